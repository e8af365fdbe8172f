package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// project makes the folder of a project of the host's user, with these files. Each file has
// its own name in it.
func (h *host) project(t *testing.T, dir string, files ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		h.put(t, filepath.Join(dir, name), name)
	}
	h.own(t, dir)
	return dir
}

// put writes a file by renaming another, as editors save files.
func (h *host) put(t *testing.T, file, content string) {
	t.Helper()
	var made []string
	for at := filepath.Dir(file); at != "/"; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+"~", []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	h.own(t, append(made, file+"~")...)
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// withoutRoots are the options of a client that does not tell its folders.
var withoutRoots = &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}

// serveProject starts toolcell serve in a folder, whose files code can read.
func (h *host) serveProject(t *testing.T, dir string, e env, o *mcp.ClientOptions, s *mcp.ClientSessionOptions) *client {
	t.Helper()
	all := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_PROJECT": "read"}
	maps.Copy(all, e)
	cmd := h.command(t, all, "serve")
	cmd.Dir = dir
	return connectAs(t, cmd, o, s)
}

// seeSecrets prints which of these files of /project have content, on each way that leads there.
func seeSecrets(names ...string) string {
	return fmt.Sprintf(`
import os, shutil, subprocess
seen = []
for name in %q.split("|"):
    for top in ("/project/", "/proc/self/root/project/", "/project/../project/", "/proc/thread-self/cwd/../project/"):
        path = top + name
        ways = {
            "open": lambda: open(path, "rb").read(),
            "stat": lambda: os.stat(path).st_size * "x" if not os.path.isdir(path) else "",
            "list": lambda: os.listdir(path),
            "fd": lambda: os.read(os.open(name, os.O_RDONLY, dir_fd=os.open(top, os.O_PATH)), 99),
            "copy": lambda: open(shutil.copy(path, "/tmp/copy"), "rb").read(),
            "link": lambda: (os.symlink(path, "/tmp/link"), open("/tmp/link", "rb").read(), os.unlink("/tmp/link"))[1],
            "hard": lambda: (os.link(path, "/tmp/hard"), open("/tmp/hard", "rb").read())[1],
            "cat": lambda: subprocess.run(["cat", path], capture_output=True).stdout,
            "xattr": lambda: os.listxattr(path) and "",
            "move": lambda: os.rename(path, path + ".txt") or "moved",
            "remove": lambda: os.remove(path) or "removed",
            "write": lambda: open("/project/new", "w") and "written",
        }
        for way, act in ways.items():
            try:
                if act(): seen.append((way, path))
            except OSError: pass
print(seen)`, strings.Join(names, "|"))
}

// TestProjectIsReadableButForSecrets, in every form of sandbox, also those that appear or are
// replaced between two runs.
//
//test:mainjob
func TestProjectIsReadableButForSecrets(t *testing.T) {
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		shared := sharedFolder(t)
		dir := h.project(t, filepath.Join(shared, "shop"), "README", "src/app.py", ".env", "src/tls/a.pem", "src/tls/b.KEY", ".npmrc", ".git/config", ".git/HEAD", "keys/.env.d/x", "prod.txt")
		for name, to := range map[string]string{"shown": ".env", "src/.netrc": "../prod.txt", "up": "../outside", "away": "/etc/shadow"} {
			if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			h.own(t, filepath.Join(dir, name))
		}
		c := h.serveProject(t, dir, nil, withoutRoots, nil)
		if h.name != "no-proc" {
			c.wantStart(t, h)
		}
		const look = `print(open("/project/README").read(), open("/project/src/app.py").read(), open("/project/.git/HEAD").read())`
		names := []string{".env", "src/tls/a.pem", "src/tls/b.KEY", ".npmrc", ".git/config", "keys/.env.d", "keys/.env.d/x", "prod.txt", "shown", "src/.netrc", "up", "away"}
		for range 3 {
			c.python(t, look).want(t, "README src/app.py .git/HEAD")
			c.python(t, seeSecrets(names...)).want(t, "[]")
		}
		// Sandboxes were prepared before.
		h.put(t, filepath.Join(dir, ".env"), "saved again")
		c.python(t, seeSecrets(names...)).want(t, "[]")
		h.put(t, filepath.Join(dir, "src/deep/er/.env.local"), "new")
		c.python(t, seeSecrets(append(names, "src/deep/er/.env.local")...)).want(t, "[]")
		if err := os.Rename(filepath.Join(dir, "src"), filepath.Join(dir, "lib")); err != nil {
			t.Fatal(err)
		}
		c.python(t, seeSecrets("lib/tls/a.pem", "lib/deep/er/.env.local", ".env")).want(t, "[]")
		if err := os.Remove(filepath.Join(dir, ".env")); err != nil {
			t.Fatal(err)
		}
		h.put(t, filepath.Join(dir, ".env"), "made again")
		c.python(t, seeSecrets(".env", "lib/tls/a.pem")).want(t, "[]")
		c.in(t, "s", "print(open('/project/README').read())").want(t, "README")
		c.in(t, "s", seeSecrets(names...)).want(t, "[]")
		out, errs, code := h.run(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "import os; print(os.path.exists('/project'))")
		if out != "False\n" || code != 0 {
			t.Errorf("without the setting: %q, %q, %d", out, errs, code)
		}
	})
}

// TestProjectIsThatOfTheClient: of its roots, as they are when a run starts. Its session with the
// old folder ends.
func TestProjectIsThatOfTheClient(t *testing.T) {
	h := firstHost(t)
	for era, s := range map[string]*mcp.ClientSessionOptions{"2025-11-25": {ProtocolVersion: "2025-11-25"}, "2026-07-28": nil} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			shared := sharedFolder(t)
			var dirs []string
			for _, name := range []string{"started in", "one", "another one"} {
				dirs = append(dirs, h.project(t, filepath.Join(shared, name), "name", ".env"))
				h.put(t, filepath.Join(shared, name, "name"), name)
			}
			inner := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil)
			cmd := h.command(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_PROJECT": "read"}, "serve")
			cmd.Dir = dirs[0]
			c := &client{cmd: cmd, stderr: &syncBuffer{}}
			cmd.Stderr = c.stderr
			var err error
			if c.ClientSession, err = inner.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, s); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			const look = "import os; print(open('/project/name').read() if os.path.exists('/project') else 'nothing', *(open('/project/.env') if os.path.exists('/project') else []))"
			r := c.python(t, look)
			r.want(t, "nothing")
			r.noted(t, "nothing is shown at /project: the client has no folder open on this machine")
			root := func(n int) string { return "file://" + strings.ReplaceAll(dirs[n], " ", "%20") }
			inner.AddRoots(&mcp.Root{URI: "https://example.com/x"}, &mcp.Root{URI: root(1)})
			c.python(t, look).want(t, "one")
			c.in(t, "s", look+"; x = 1").want(t, "one")
			c.in(t, "s", look+"; print(x)").want(t, "one\n1")
			inner.RemoveRoots(root(1))
			inner.AddRoots(&mcp.Root{URI: root(2)})
			for range 3 {
				c.python(t, look).want(t, "another one")
			}
			r = c.in(t, "s", look+"; print('x' in globals())")
			r.want(t, "another one\nFalse")
			r.noted(t, `session "s" was ended: the client works in another folder now`)
			inner.RemoveRoots(root(2))
			inner.AddRoots(&mcp.Root{URI: "file://" + h.home})
			r = c.python(t, look)
			r.want(t, "nothing")
			r.noted(t, fmt.Sprintf("the project's folder %q is not shown at /project: it is, or contains, your home", h.home))
			if r = c.python(t, look); strings.Contains(r.text, "note") {
				t.Errorf("said twice: %s", r.text)
			}
		})
	}
}

// TestProjectAndAHostNeedTheUser, as they would if a private server had been read.
func TestProjectAndAHostNeedTheUser(t *testing.T) {
	h := firstHost(t)
	shared := sharedFolder(t)
	dir := h.project(t, filepath.Join(shared, "p"), "file")
	policy := filepath.Join(shared, "policy.toml")
	if err := os.WriteFile(policy, []byte("[network]\nallow = [\"https://example.com\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	exec := func(args ...string) (string, string, int) {
		t.Helper()
		cmd := append([]string{"exec", "--server", "https://example.com", "-c", "print(1)"}, args...)
		as := *h
		as.wrap = append([]string{"/bin/sh", "-c", fmt.Sprintf("cd '%s' && exec \"$@\"", dir), "sh"}, h.wrap...)
		return as.run(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_POLICY": policy}, cmd...)
	}
	if out, errs, code := exec(); code != 0 || out != "1\n" {
		t.Fatalf("without the project: %q, %q, %d", out, errs, code)
	}
	out, errs, code := exec("--project")
	if code == 0 || out != "" || !strings.Contains(errs, "private data was read before, from /project; what is sent to these hosts gets to others") {
		t.Errorf("with it: %q, %q, %d", out, errs, code)
	}
}

// TestProjectThatOnlyItsOwnerMayEnter is named in a note, with what to do.
func TestProjectThatOnlyItsOwnerMayEnter(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		dir := h.project(t, filepath.Join(sharedFolder(t), "p"), "file", ".env")
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		h.own(t, dir)
		c := h.serveProject(t, dir, nil, withoutRoots, nil)
		r := c.python(t, "try: print(open('/project/file').read())\nexcept OSError as e: print(type(e).__name__)\n"+
			"try: print(open('/project/.env').read())\nexcept OSError as e: print(type(e).__name__)")
		switch h.name {
		case "user-one-id": // the code has the user's own ID
			r.want(t, "file")
		case "root":
			r.want(t, "FileNotFoundError\nFileNotFoundError")
		default:
			r.want(t, "PermissionError\nPermissionError")
		}
		if told := strings.Contains(r.text, "note: ") && strings.Contains(r.text, "chmod o+rx "+dir); told == (h.name == "user-one-id") {
			t.Errorf("got %s", r.text)
		}
		if c = h.serveProject(t, dir, nil, withoutRoots, nil); strings.Contains(c.python(t, "pass").text, "one-id") != (h.name == "user-one-id") {
			t.Error("the project changed the code's ID")
		}
	})
}

// TestSubmountsOfAProjectAreNotShown, nor what is in a closed folder of it.
func TestSubmountsOfAProjectAreNotShown(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		dir := h.project(t, filepath.Join(sharedFolder(t), "p"), "file", ".env", "closed/.env", "closed/x", "sub/.env", "sub/x")
		if err := os.Chmod(filepath.Join(dir, "closed"), 0o700); err != nil {
			t.Fatal(err)
		}
		as := h.mounting(t, fmt.Sprintf(`mount -t tmpfs none '%s/sub'; echo secret >'%[1]s/sub/.env'; echo secret >'%[1]s/sub/x'; chmod 755 '%[1]s/sub'; cd '%[1]s'`, dir))
		c := as.serveProject(t, dir, nil, withoutRoots, nil)
		for range 2 {
			c.python(t, seeSecrets(".env", "closed/.env", "sub/.env", "sub/x", "sub")).want(t, "[]")
			c.python(t, "print(open('/project/file').read())").want(t, "file")
		}
	})
}

// TestProjectThatChangesAllTheTime shows no secret to any run: a file is replaced, a folder is
// moved, and a link takes its place.
func TestProjectThatChangesAllTheTime(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		shared := sharedFolder(t)
		dir := h.project(t, filepath.Join(shared, "p"), "file", "a/.env")
		outside := h.project(t, filepath.Join(shared, "outside"), "secret.txt")
		c := h.serveProject(t, dir, nil, withoutRoots, nil)
		c.python(t, "print(open('/project/file').read())").want(t, "file")
		churn := exec.Command("/bin/sh", "-c", fmt.Sprintf(`cd '%s'; while :; do
for n in 1 2 3 4 5 6 7 8; do echo secret >a/new; chmod 644 a/new; mv a/new a/.env; sleep 0.0$n; done
mv a b; ln -s '%s' a; sleep 0.02; rm a; mv b a; done`, dir, outside))
		churn.SysProcAttr = h.command(t, nil).SysProcAttr
		if err := churn.Start(); err != nil {
			t.Fatal(err)
		}
		stop := sync.OnceFunc(func() { _ = churn.Process.Kill(); _ = churn.Wait() })
		defer stop()
		for end := time.Now().Add(slow(8 * time.Second)); time.Now().Before(end); {
			// What is replaced while the code runs is seen (docs/mounts.md), so it looks at once.
			r := c.python(t, "import os\nfd = os.open('/project/a', os.O_PATH)\n"+
				"try: print(open('/project/a/secret.txt').read())\nexcept OSError: print('ok')")
			if r.isError && !strings.Contains(r.text, "changed while its sandbox was started") && !strings.Contains(r.text, "FileNotFoundError") || strings.Contains(r.text, "secret.txt\n") {
				t.Errorf("got %s", r.text)
			}
		}
		stop() // on a slow host no sandbox may start between two changes
		c.python(t, "print(open('/project/file').read())").want(t, "file")
	})
}
