package npm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripted returns the tarball of a package with an install script, which is JavaScript, and needs the
// program of the package plain.
func scripted(t *testing.T, name, script string) []byte {
	t.Helper()
	return pack(t, tarEntry{name: "package/package.json", content: fmt.Sprintf(`{"name":%q,"version":"1.0.0","bin":"cli.js","scripts":{"install":"plain && node install.js"}}`, name)},
		tarEntry{name: "package/cli.js", content: "#!/usr/bin/env node\n", mode: 0o755}, tarEntry{name: "package/install.js", content: script})
}

// TestInstallScriptsRunOnACopy, those of the packages that are named and no others; what an optional
// package cannot do is no error.
func TestInstallScriptsRunOnACopy(t *testing.T) {
	tool := onHost(t)
	const writes = `require('fs').writeFileSync('made', process.cwd(), { mode: 0o600 }); require('fs').writeFileSync(process.env.HOME + '/cache', ''); require('fs').symlinkSync('/etc', 'link')`
	x := newRegistry(t)
	entries := map[string]map[string]any{
		"node_modules/native":                         with(x.add("native", "1.0.0", scripted(t, "native", writes)), map[string]any{"hasInstallScript": true}),
		"node_modules/plain":                          x.add("plain", "1.0.0", packageOf(t, "plain", "1.0.0")),
		"node_modules/plain/node_modules/@scope/deep": with(x.add("@scope/deep", "1.0.0", scripted(t, "@scope/deep", writes)), map[string]any{"hasInstallScript": true}),
		"node_modules/quiet":                          x.add("quiet", "1.0.0", scripted(t, "quiet", writes)),
		"node_modules/extra":                          with(x.add("extra", "1.0.0", scripted(t, "extra", "console.error('no compiler'); process.exit(1)")), map[string]any{"hasInstallScript": true, "optional": true}),
	}
	layer, err := newStore(t).Ensure(t.Context(), x.request(lockOf(t, entries)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(layer.Scripts, layer.Needed); got != "[@scope/deep extra native] [@scope/deep native]" {
		t.Errorf("its scripts are %s", got)
	}
	home, said, err := runScripts(t, tool, layer)
	if err != nil || !strings.Contains(said, "no compiler") {
		t.Fatalf("%v\n%s", err, said)
	}
	for file, mode := range map[string]os.FileMode{"": 0o755, "native/made": 0o644, "native/cli.js": 0o755, "plain/node_modules/@scope/deep/made": 0o644, "plain/cli.js": 0o755} {
		if info, err := os.Stat(filepath.Join(home, "node_modules", file)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	for _, none := range []string{home + "/node_modules/quiet/made", layer.Dir + "/node_modules/native/made"} {
		if _, err := os.Lstat(none); err == nil {
			t.Errorf("there is %s", none)
		}
	}
	if left, err := filepath.Glob(home + "/[a-z.]*"); err != nil || len(left) != 1 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// TestFailedInstallScriptFails, with what it has said.
func TestFailedInstallScriptFails(t *testing.T) {
	tool := onHost(t)
	x := newRegistry(t)
	entry := with(x.add("native", "1.0.0", scripted(t, "native", "console.log('no compiler'); process.exit(1)")), map[string]any{"hasInstallScript": true})
	entries := map[string]map[string]any{"node_modules/native": entry, "node_modules/plain": x.add("plain", "1.0.0", packageOf(t, "plain", "1.0.0"))}
	layer, err := newStore(t).Ensure(t.Context(), x.request(lockOf(t, entries)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, said, err := runScripts(t, tool, layer); err == nil || !strings.Contains(said, "no compiler") {
		t.Errorf("%v: %s", err, said)
	}
}

// runScripts runs the install scripts of a layer here, as a sandbox would.
func runScripts(t *testing.T, tool Tool, layer *Layer) (home, said string, err error) {
	t.Helper()
	home = t.TempDir()
	args := tool.RunScripts(layer, layer.Dir)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = []string{"HOME=" + home, "TMPDIR=/tmp", "PATH=" + os.Getenv("PATH"), "npm_config_cache=" + home + "/.npm"}
	out, err := cmd.CombinedOutput()
	return home, string(out), err
}
