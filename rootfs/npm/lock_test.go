package npm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/rootfs/packages"
)

// lockWith asks for a lock from a sandbox that answers with out.
func lockWith(t *testing.T, out packages.Output, specs ...string) ([]byte, packages.Command, error) {
	t.Helper()
	var got packages.Command
	lock, err := Lock(t.Context(), LockRequest{
		Registry: registry, Files: []string{"files.example"}, Platform: linux, Specs: specs,
		Before: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Tool: Tool{Node: "/n/node", CLI: "/n/npm-cli.js", Run: func(_ context.Context, c packages.Command) (packages.Output, error) {
			got = c
			return out, nil
		}},
	})
	return lock, got, err
}

func TestNPMHasTheRegistryAlone(t *testing.T) {
	made := lockOf(t, map[string]map[string]any{"node_modules/a": entryOf("a"), "node_modules/@s/b": entryOf("b")})
	lock, c, err := lockWith(t, packages.Output{Stdout: made}, "a", "@s/b@^1.2")
	if err != nil || !bytes.Equal(lock, made) {
		t.Fatalf("got %s, %v", lock, err)
	}
	if want := []string{"files.example:443", "registry.example:443"}; !slices.Equal(c.Hosts, want) || c.Plain || c.Authorized != "registry.example:443" || c.Args[0] != "/n/node" {
		t.Errorf("the command is %+v", c)
	}
	var task struct {
		Args       []string
		Env, Files map[string]string
	}
	if err := json.Unmarshal(c.Input("http://proxy", []byte("PEM")), &task); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund", "--registry=" + registry, "--before=2026-01-02T03:04:05Z", "--cafile=roots.pem", "--cpu=x64"} {
		if !slices.Contains(task.Args, arg) {
			t.Errorf("%s is not in %q", arg, task.Args)
		}
	}
	if task.Env["HTTPS_PROXY"] != "http://proxy" || task.Files["roots.pem"] != "PEM" || task.Files["package.json"] != `{"dependencies":{"@s/b":"^1.2","a":"latest"},"private":true}` {
		t.Errorf("the task is %+v", task)
	}
}

func TestSpecsLeadNowhereElse(t *testing.T) {
	for _, spec := range []string{
		"", "@", "a@", "a@npm:b", "a@git+ssh://x/y.git", "a@github:x/y", "x/y", "a@../b", "a@file:b", "../a", "./a", "/a", "https://x/a.tgz", "a@https://x/a.tgz", "a b", "--global", "a@\n1", "@s", "a@" + strings.Repeat("1", 101),
	} {
		_, c, err := lockWith(t, packages.Output{}, spec)
		if _, ok := errors.AsType[*packages.RequestError](err); !ok || c.Args != nil {
			t.Errorf("%q: got %v", spec, err)
		}
	}
	for _, specs := range [][]string{nil, {"a", "a@2"}, make([]string, maxSpecs+1)} {
		if _, c, err := lockWith(t, packages.Output{}, specs...); err == nil || c.Args != nil {
			t.Errorf("%q: got %v", specs, err)
		}
	}
}

func TestWhatNPMSaysIsExplained(t *testing.T) {
	other := lockOf(t, map[string]map[string]any{"node_modules/b": entryOf("b")})
	for what, c := range map[string]struct {
		out     packages.Output
		want    string
		request bool
	}{
		"no version":    {packages.Output{Code: 1, Stderr: []byte("npm error code ETARGET\nnpm error notarget No matching version found for a@99.\nnpm error notarget In most cases")}, "npm: No matching version found for a@99.", true},
		"no package":    {packages.Output{Code: 1, Stderr: []byte("npm error code E404\nnpm error 404 Not Found - GET https://registry.example/a\n")}, "the registry does not have a package: Not Found - GET https://registry.example/a", true},
		"no network":    {packages.Output{Code: 1, Stderr: []byte("npm error code ECONNRESET\nnpm error errno ECONNRESET\nnpm error network request failed\x1b[31m\n")}, "npm failed: request failed", false},
		"refused":       {packages.Output{Code: 1, Stderr: []byte("npm error code E403"), Refused: []string{"x:443 is not allowed"}}, "npm cannot reach the registry: x:443 is not allowed", false},
		"node fails":    {packages.Output{Code: 1, Stderr: []byte("Error: spawn ENOENT\n")}, "npm failed: Error: spawn ENOENT", false},
		"silence":       {packages.Output{Code: 137}, "npm failed: it said nothing", false},
		"a flood":       {packages.Output{Code: 1, Stderr: bytes.Repeat([]byte("x"), 1<<20)}, "npm failed: xxx", false},
		"no lock":       {packages.Output{Stdout: []byte("{}")}, "lockfileVersion 0", true},
		"a lock of git": {packages.Output{Stdout: lockOf(t, map[string]map[string]any{"node_modules/a": with(entryOf("a"), map[string]any{"resolved": "git+https://x/a.git"})})}, "comes from git", true},
		"another lock":  {packages.Output{Stdout: other}, "npm wrote a lock without a", false},
	} {
		_, _, err := lockWith(t, c.out, "a")
		_, request := errors.AsType[*packages.RequestError](err)
		if err == nil || !strings.Contains(err.Error(), c.want) || request != c.request || len(err.Error()) > 600 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: got %v (%v), want %q", what, err, request, c.want)
		}
	}
}

// onHost runs npm here, as a sandbox would: the registry is this test's own.
func onHost(t *testing.T) Tool {
	t.Helper()
	node, err := exec.LookPath("node")
	npm, npmErr := exec.LookPath("npm")
	if err != nil || npmErr != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm")
	}
	cli, err := filepath.EvalSymlinks(npm)
	if err != nil {
		t.Fatal(err)
	}
	return Tool{Node: node, CLI: cli, Run: func(ctx context.Context, c packages.Command) (packages.Output, error) {
		cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
		cmd.Env = []string{"TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		cmd.Stdin = bytes.NewReader(c.Input("", nil))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			err = nil
		}
		return packages.Output{Code: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}, err
	}}
}

// publish lets a registry answer npm about the versions of a package, each a day older than
// the next.
func (x *fakeRegistry) publish(t *testing.T, name string, dependencies map[string]string, versions ...string) {
	t.Helper()
	all, times := map[string]any{}, map[string]string{}
	for i, version := range versions {
		tarball := packageOf(t, name, version)
		entry := x.add(name, version, tarball)
		all[version] = map[string]any{
			"name": name, "version": version, "dependencies": dependencies, "bin": map[string]string{name: "cli.js"}, "hasInstallScript": i == 0,
			"scripts": map[string]string{"install": "exit 1"},
			"dist":    map[string]any{"tarball": entry["resolved"], "integrity": entry["integrity"]},
		}
		times[version] = time.Now().AddDate(0, 0, i-len(versions)).UTC().Format(time.RFC3339)
	}
	last := versions[len(versions)-1]
	page, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": last}, "versions": all, "time": times})
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tarballs["/"+name] = page
}

// TestServerFromARegistryRuns has the real npm lock a server, and the real node run it.
func TestServerFromARegistryRuns(t *testing.T) {
	x, s, tool := newRegistry(t), newStore(t), onHost(t)
	x.publish(t, "server", map[string]string{"library": "^1.0.0"}, "1.0.0", "2.0.0")
	x.publish(t, "library", nil, "1.0.0", "1.1.0")
	source := Source{Registry: x.URL}
	r := LockRequest{Source: source, Platform: linux, Tool: tool, Specs: []string{"server"}}
	newest, err := Lock(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Before = time.Now().Add(-36 * time.Hour)
	before, err := Lock(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	was, err := ParseLock(t.Context(), before, source, linux)
	if err != nil {
		t.Fatal(err)
	}
	is, err := ParseLock(t.Context(), newest, source, linux)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(Diff(was, is)), "[{library 1.0.0 1.1.0} {server 1.0.0 2.0.0}]"; got != want {
		t.Errorf("the locks differ in %s, not %s", got, want)
	}
	if got := was.InstallScripts(); !slices.Equal(got, []string{"library", "server"}) {
		t.Errorf("install scripts: %q", got)
	}
	layer, err := s.Ensure(t.Context(), x.request(newest), nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Bin(layer.Dir, "server", "")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool.Node, filepath.Join(layer.Dir, file)).CombinedOutput(); err != nil || string(out) != "server\n" {
		t.Errorf("it printed %q, %v", out, err)
	}
	r.Specs = []string{"server@^3"}
	if _, err := Lock(t.Context(), r); err == nil || !strings.Contains(err.Error(), "No matching version found for server@^3") {
		t.Errorf("a version that is not there: %v", err)
	}
	x.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }
	r.Specs = []string{"gone"}
	if _, err := Lock(t.Context(), r); err == nil || !strings.Contains(err.Error(), "the registry does not have a package") {
		t.Errorf("a package that is not there: %v", err)
	}
}
