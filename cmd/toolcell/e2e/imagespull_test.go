package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// TestImagesPullWithALogin logs in to a registry in each way that needs no stored one.
func TestImagesPullWithALogin(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	prefix := registry(t, "someone", "secret", v)
	addr, _, _ := strings.Cut(prefix, "/")
	h := firstHost(t)
	e, ref := h.ownState(t), prefix+v+"-slim"
	authfile := filepath.Join(t.TempDir(), "auth.json")
	login := base64.StdEncoding.EncodeToString([]byte("someone:secret"))
	if err := os.WriteFile(authfile, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, addr, login), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		fails string // with this message, if it is not empty
	}{
		"user and password":       {"", []string{"--creds", "someone:secret"}, ""},
		"password from stdin":     {"secret\n", []string{"--creds", "someone"}, ""},
		"without an end of line":  {"secret", []string{"--creds=someone"}, ""},
		"file":                    {"", []string{"--authfile", authfile}, ""},
		"nothing":                 {"", nil, "refused access"},
		"wrong password":          {"", []string{"--creds", "someone:wrong"}, "refused access"},
		"empty password":          {"", []string{"--creds", "someone"}, "it is empty"},
		"no user":                 {"", []string{"--creds", ":secret"}, "has no user"},
		"file that is not there":  {"", []string{"--authfile", authfile + "x"}, "no such file"},
		"file of other platforms": {"", []string{"--authfile", authfile, "--platform", "linux/s390x"}, "not for linux/s390x"},
		"no platform":             {"", []string{"--platform", "arm64"}, "not OS/ARCH[/VARIANT]"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := h.shell(t, e, `bin=$1; shift; printf %s "$STDIN" | "$bin" images pull --no-compile "$@"`, append(c.args, ref)...)
			cmd.Env = append(cmd.Env, "STDIN="+c.stdin)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.fails == "") || !strings.Contains(string(out), c.fails) {
				t.Errorf("%v: %s", err, out)
			}
			if strings.Contains(string(out), "secret") || strings.Contains(string(out), "wrong") {
				t.Errorf("it shows a password: %s", out)
			}
		})
	}
}

// TestImagesPullTakesSeveral, and goes on after one that fails.
func TestImagesPullTakesSeveral(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	layout := rootfstest.Layout(t, v)
	addr := rootfstest.StartRegistry(t, "", "")
	rootfstest.PushLayout(t, layout, addr+"/python:a")
	h := firstHost(t)
	e := h.ownState(t)
	out, errs, code := h.run(t, e, "images", "pull", "--no-compile", "oci:"+layout, addr+"/python:none", addr+"/python:a")
	if code == 0 || strings.Count(out, "sha256:") != 2 || !strings.Contains(errs, "python:none") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if list := h.must(t, e, "images", "list"); !strings.Contains(list, addr+"/python:a") || !strings.Contains(list, layout) {
		t.Errorf("list: %s", list)
	}
}

// TestImagesByRelativePath: the process that compiles modules in the background has
// another working folder.
func TestImagesByRelativePath(t *testing.T) {
	t.Parallel()
	_, v := pythons()
	h := firstHost(t)
	dir := t.TempDir()
	if err := os.Symlink(rootfstest.Layout(t, v), filepath.Join(dir, "python")); err != nil {
		t.Fatal(err)
	}
	e := env{"DIR": dir}
	cmd := h.shell(t, e, `cd "$DIR" && "$@" && ls`, "exec", "--state-dir", "state", "--image", "oci:python", "-c", "print(1)")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "1\npython\nstate\n") {
		t.Fatalf("%v: %s", err, out)
	}
	waitFor(t, "bytecode of the modules", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "state/cache/images/rootfs/*/bytecode.json"))
		return len(found) == 1
	})
}
