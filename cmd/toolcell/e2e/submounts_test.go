package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mounting gives a host like h whose processes see what a script has mounted, and
// nobody else does. It needs root.
func (h *host) mounting(t *testing.T, script string) *host {
	t.Helper()
	if os.Geteuid() != 0 || exec.Command("/usr/bin/unshare", "-m", "true").Run() != nil {
		t.Skip("needs root, to mount")
	}
	as := *h
	as.wrap = []string{"/usr/bin/unshare", "-m", "/bin/sh", "-ec", script + "\nexec \"$@\"", "sh"}
	if h.cred != nil {
		id := func(n uint32) string { return fmt.Sprint(n) }
		as.wrap = append(as.wrap, "/usr/bin/setpriv", "--reuid="+id(h.cred.Uid), "--regid="+id(h.cred.Gid), "--groups="+id(h.cred.Groups[0]), "--")
		as.cred = nil
	}
	return &as
}

// TestSubmountsOfAFolderAreNotShown, whatever their names, on folders and on files, and
// also those that come later.
func TestSubmountsOfAFolderAreNotShown(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		dir := sharedFolder(t)
		folder := h.mountFolder(t, dir, "a folder", 0o777)
		for _, name := range []string{"sub \\dir", "deep/er", "later"} {
			if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, "one.txt"), []byte("below"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		as := h.mounting(t, fmt.Sprintf(`cd '%s'
put() { mount -t tmpfs none "$1"; echo secret >"$1/secret"; mkdir -p "$1/in"; chmod 777 "$1" "$1/in"; }
put 'sub \dir'; put deep/er; put deep/er/in
mount --bind '%s/secret' one.txt
cd /`, folder, dir))
		mounts := folder + ":/data:ro," + folder + ":/new/place:rw," + folder + ":/workspace/data"
		e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": mounts}
		const look = `
import os
found = []
for top in ("/data", "/new/place", "/workspace/data"):
    assert open(top + "/file.txt").read() == "of a folder"
    for at, folders, files in os.walk(top):
        for name in files:
            with open(os.path.join(at, name)) as f:
                if "secret" in f.read() + name: found.append(os.path.join(at, name))
    for name in ("sub \\dir", "deep/er", "one.txt"):
        try:
            open(f"{top}/{name}/new" if name != "one.txt" else f"{top}/one.txt", "w").write("x")
            if name != "one.txt": found.append("written: " + name)
        except OSError: pass
print(found)`
		c := as.serve(t, e)
		c.wantStart(t, h)
		c.python(t, look).want(t, "[]")
		enter := exec.Command("/usr/bin/nsenter", "-t", fmt.Sprint(c.cmd.Process.Pid), "-m", "/bin/sh", "-ec",
			`mount -t tmpfs none "$1/later"; echo secret >"$1/later/secret"; cat "$1/one.txt"`, "sh", folder)
		if out, err := enter.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "secret" {
			t.Fatalf("mounting later: %v: %s", err, out)
		}
		for range 3 {
			c.python(t, look).want(t, "[]")
		}
		out, errs, code := as.run(t, e, "exec", "-c", look)
		if out != "[]\n" || code != 0 {
			t.Errorf("exec: %q, %q, %d", out, errs, code)
		}
		if b, err := os.ReadFile(filepath.Join(folder, "one.txt")); err != nil || string(b) != "below" {
			t.Errorf("the file below is %q, %v", b, err)
		}
	})
}

// TestSubmountsOfUsrAreShownReadOnly, as they are of the host's own.
func TestSubmountsOfUsrAreShownReadOnly(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		as := h.mounting(t, `mount -t tmpfs none /usr/share/doc
echo driver >/usr/share/doc/driver; mkdir '/usr/share/doc/a b'; chmod 777 /usr/share/doc '/usr/share/doc/a b'
mount -t tmpfs none '/usr/share/doc/a b'; chmod 777 '/usr/share/doc/a b'
cp /bin/true '/usr/share/doc/a b/true'; chmod 4755 '/usr/share/doc/a b/true'`)
		const look = `
import os
print(open("/usr/share/doc/driver").read().strip(), os.path.exists("/usr/share/doc/a b/true"))
for at in ("/usr/share/doc/", "/usr/share/doc/a b/"):
    flags = os.statvfs(at).f_flag
    print(bool(flags & os.ST_RDONLY), bool(flags & os.ST_NOSUID), bool(flags & os.ST_NODEV))
    for attempt in (lambda: open(at + "new", "w"), lambda: os.mkdir(at + "x"), lambda: os.chmod(at, 0o700)):
        try: attempt(); print("written")
        except OSError: pass`
		c := as.serve(t, env{"TOOLCELL_IMAGE": "host"})
		c.wantStart(t, h)
		c.python(t, look).want(t, "driver True\nTrue True True\nTrue True True")
	})
}

// TestMountPointsBelongToTheRun: other projects' runs see nothing of them, nor does the
// image on disk.
func TestMountPointsBelongToTheRun(t *testing.T) {
	image := registry(t, "", "", "3.14") + "3.14-slim"
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		dir := sharedFolder(t)
		folder := h.mountFolder(t, dir, "w", 0o755)
		mounts := strings.Join([]string{folder + ":/data", folder + ":/srv/deep/er", folder + ":/mnt", folder + "/file.txt:/one.txt", folder + ":/var/lib/data"}, ",")
		for _, image := range []string{"host", image} {
			with := h.serve(t, env{"TOOLCELL_IMAGE": image, "TOOLCELL_MOUNTS": mounts})
			with.wantStart(t, h)
			plain := h.serve(t, env{"TOOLCELL_IMAGE": image})
			plain.wantStart(t, h)
			with.python(t, `
import os, ssl, sqlite3, subprocess
print([open(p).read() for p in ("/data/file.txt", "/srv/deep/er/file.txt", "/mnt/file.txt", "/one.txt", "/var/lib/data/file.txt")])
print(subprocess.run(["/bin/sh", "-c", "echo shell"], capture_output=True, text=True).stdout.strip(), os.listdir("/srv"), os.path.exists("/run/toolcell"))
def refused(path):
    try: open(path, "w")
    except OSError: return True
print(all(map(refused, ("/x", "/srv/x", "/data/x", "/var/lib/x", "/etc/x", "/usr/x", "/one.txt"))))`).
				want(t, "['of w', 'of w', 'of w', 'of w', 'of w']\nshell ['deep'] True\nTrue")
			const look = `
import os
tops = sorted(os.listdir("/"))
print([p for p in ("/data", "/srv/deep", "/one.txt", "/var/lib/data") if os.path.lexists(p)])
print([n for n in tops if n not in ("data", "one.txt", "srv", "mnt", "var")])
def kind(p): return os.readlink(p) if os.path.islink(p) else oct(os.stat(p).st_mode)
print({n: kind("/" + n) for n in tops if n not in ("data", "one.txt", "srv", "mnt", "var", "proc", "dev")})`
			got := plain.python(t, look)
			if !strings.HasPrefix(got.text, "[]\n") {
				t.Errorf("%s: other runs see %s", image, got.text)
			}
			_, same, _ := strings.Cut(got.text, "\n")
			if text := with.python(t, look).text; !strings.HasSuffix(text, same) {
				t.Errorf("%s: beside the mounts the root is\n%s\nwithout them\n%s", image, text, same)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(h.home, "state", "*", "*", "root", "data")); len(left) > 0 {
			t.Errorf("left in the images: %v", left)
		}
	})
}
