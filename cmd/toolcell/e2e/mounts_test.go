package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// mountFolder makes a folder of the host's user that others may use as mode
// says.
func (h *host) mountFolder(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "file.txt")
	if err := os.WriteFile(file, []byte("of "+name), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode&0o666); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	h.own(t, path, file)
	return path
}

// own gives files to the host's user, where that is root to another one: root's
// own are another matter.
func (h *host) own(t *testing.T, paths ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	cred := h.owner(t)
	for _, p := range paths {
		if err := os.Lchown(p, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// owner is the host's user, another one if that is root.
func (h *host) owner(t *testing.T) *syscall.Credential {
	t.Helper()
	if h.cred != nil {
		return h.cred
	}
	cred, err := ostest.MakeUser(ostest.UserName)
	if err != nil {
		t.Fatal(err)
	}
	return cred
}

// sharedFolder is one that every user can reach.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "mounts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMountsAreShownAndHold: the code reads what is shown, writes only where it
// may, and gets to nothing beside it.
func TestMountsAreShownAndHold(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		dir := sharedFolder(t)
		outside := h.mountFolder(t, dir, "outside", 0o777)
		open := h.mountFolder(t, dir, "open", 0o777)
		mine := h.mountFolder(t, dir, "mine", 0o755)
		private := h.mountFolder(t, dir, "private", 0o700)
		for name, to := range map[string]string{"away": outside + "/file.txt", "up": "../outside/file.txt", "root": "/"} {
			link := filepath.Join(open, name)
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
			h.own(t, link)
		}
		mounts := strings.Join([]string{
			open + ":/data:ro", mine + ":/mine:rw", mine + ":/workspace/deep/er/mine:rw", private + ":/private",
			open + "/file.txt:/one.txt", private + "/file.txt:/tmp/two.txt:ro",
		}, ",")
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": mounts})
		c.wantStart(t, h)
		code, err := os.ReadFile(filepath.Join("testdata", "mounts.py"))
		if err != nil {
			t.Fatal(err)
		}
		c.python(t, fmt.Sprintf("outside = %q\n%s", outside, code)).want(t, "all of it")
		if b, err := os.ReadFile(filepath.Join(mine, "new.txt")); err != nil || string(b) != "from inside" {
			t.Errorf("what the code wrote: %q, %v", b, err)
		}
		st, err := os.Stat(filepath.Join(mine, "new.txt"))
		if err == nil && os.Geteuid() == 0 {
			if got, want := fileOwner(st), h.owner(t).Uid; got != want {
				t.Errorf("what the code wrote belongs to %d, want %d", got, want)
			}
		}
	})
}

// TestMountsOfRootWithoutProc: as in most containers, where the code has another host ID.
func TestMountsOfRootWithoutProc(t *testing.T) {
	h := *firstHost(t)
	if os.Geteuid() == 0 {
		h.wrap = []string{"/usr/bin/unshare", "-m", "/bin/sh", "-c", coverProc[len(coverProc)-2], "sh"}
	} else {
		h.wrap = coverProc
	}
	dir := sharedFolder(t)
	private := h.mountFolder(t, dir, "private", 0o700)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": private + ":/own:rw"})
	for range 2 { // the first run learns that there is no /proc
		c.python(t, "open('/own/new.txt', 'w').write('from inside'); print(open('/own/file.txt').read())").want(t, "of private")
	}
	st, err := os.Stat(private + "/new.txt")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && fileOwner(st) != h.owner(t).Uid {
		t.Errorf("what the code wrote belongs to %d", fileOwner(st))
	}
}

// TestMountThatBecomesALinkIsRefused, since it would be followed on the host.
func TestMountThatBecomesALinkIsRefused(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		dir := sharedFolder(t)
		data, other := h.mountFolder(t, dir, "data", 0o755), h.mountFolder(t, dir, "other", 0o755)
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": data + ":/data"})
		c.python(t, "print(open('/data/file.txt').read())").want(t, "of data")
		if err := os.Rename(data, data+"-was"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, data); err != nil {
			t.Fatal(err)
		}
		if r := c.python(t, "print(open('/data/file.txt').read())"); r.status() != "sandbox_error" || !strings.Contains(r.text, "has become a link") {
			t.Errorf("got %s", r.text)
		}
	})
}

// TestMountThatCannotBeUsedIsExplained, instead of a bare PermissionError.
func TestMountThatCannotBeUsedIsExplained(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a folder that belongs to root")
	}
	onHosts(t, func(t *testing.T, h *host) {
		dir := sharedFolder(t)
		e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": dir + ":/data:rw"}
		want := "code cannot write /data: " + dir + " belongs to uid 0 (mode 0755), and the code is uid "
		if _, errs, _ := h.run(t, e, "exec", "-c", "open('/data/x', 'w')"); !strings.Contains(errs, want) || !strings.Contains(errs, "to fix it: ch") {
			t.Errorf("exec says %s\nwant %q", errs, want)
		}
		if out, _, _ := h.run(t, e, "doctor"); !strings.Contains(out, want) || !strings.Contains(out, "RC-MOUNT") {
			t.Errorf("doctor says %s", out)
		}
	})
}

// TestFileSystemWithoutIDMaps: what cannot be shown as the code's own is shown
// as it is, and it is said.
func TestFileSystemWithoutIDMaps(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount, and maps ids")
	}
	dir := sharedFolder(t)
	if err := unix.Mount("none", dir, "ramfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		h.mountFolder(t, dir, "data", 0o755)
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": dir + "/data:/data:rw"})
		r := c.python(t, "import os; print(open('/data/file.txt').read(), os.access('/data', os.W_OK))")
		r.want(t, "of data False")
		notes := fmt.Sprint(r.fields["notes"])
		if !strings.Contains(notes, "code cannot write /data: "+dir+"/data belongs to uid ") || !strings.Contains(notes, "its file system cannot show") {
			t.Errorf("the notes are %s", notes)
		}
	})
}

func TestMountsThatAreRefused(t *testing.T) {
	h := firstHost(t)
	dir := sharedFolder(t)
	state := filepath.Join(h.home, "state")
	for _, folder := range []string{filepath.Join(dir, "a/b"), filepath.Join(dir, "c"), filepath.Join(state, "cache")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inEtc := folderIn(t, "/etc")
	for name, to := range map[string]string{"etc": "/etc", "home": h.home, "in-etc": inEtc} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for mounts, want := range map[string]string{
		"/:/data":                                 "it is the whole file system",
		"/etc:/data":                              "/etc is the system's",
		inEtc + ":/data":                          "/etc is the system's",
		"/proc:/data":                             "/proc is the system's",
		"/sys:/data":                              "/sys is the system's",
		"/dev:/data":                              "/dev is the system's",
		"/run:/data":                              "/run is the system's",
		"/root:/data":                             "/root is the system's",
		"/boot:/data":                             "/boot is the system's",
		dir + "/etc:/data":                        "/etc is the system's",
		dir + "/in-etc:/data":                     "/etc is the system's",
		dir + "/c/../../../../../../etc:/data":    "/etc is the system's",
		h.home + ":/data":                         "it is, or contains, your home directory",
		dir + "/home:/data":                       "it is, or contains, your home directory",
		filepath.Dir(h.home) + ":/data":           "it is, or contains, your home directory",
		state + ":/data":                          "toolcell's own files",
		filepath.Join(state, "cache") + ":/data":  "toolcell's own files",
		filepath.Dir(bin) + "/mounts-none:/data":  "does not exist",
		"no-such-data:/data":                      "/no-such-data does not exist",
		"~/no-such-data:/data":                    filepath.Join(h.home, "no-such-data") + " does not exist",
		":/data":                                  "no SOURCE",
		dir + ":data":                             "write an absolute path",
		dir:                                       "is not SOURCE:TARGET",
		dir + ":/data:rx":                         "is not SOURCE:TARGET",
		dir + ":/":                                "the sandbox needs",
		dir + ":/usr":                             "the sandbox needs /usr",
		dir + ":/usr/lib/python3":                 "the sandbox needs /usr",
		dir + ":/proc":                            "the sandbox needs /proc",
		dir + ":/dev/shm":                         "the sandbox needs /dev",
		dir + ":/run/toolcell":                    "the sandbox needs /run",
		dir + ":/etc/x":                           "the sandbox needs /etc",
		dir + ":/tmp":                             "the sandbox's own",
		dir + ":/workspace/":                      "the sandbox's own",
		dir + ":/workspace/out":                   "the sandbox needs /workspace/out",
		dir + ":/data/../etc":                     "has .. in it",
		dir + ":/data," + dir + "/c:/data":        "one inside the other",
		dir + ":/data," + dir + "/c:/data/c":      "one inside the other",
		dir + "/a:/a:rw," + dir + "/a/b:/b":       "one is inside the other, which code may write to",
		dir + "/a/b:/b:ro," + dir + "/a:/data:rw": "one is inside the other, which code may write to",
		"/dev/null:/data":                         "neither a folder nor a file",
	} {
		out, errs, code := h.run(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MOUNTS": mounts}, "exec", "-c", "print('ran')")
		if code != exitUsage || !strings.Contains(errs, want) || !strings.Contains(errs, "TOOLCELL_MOUNTS") || out != "" {
			t.Errorf("%s: exit code %d, %q\n%s\nwant %q", mounts, code, out, errs, want)
		}
	}
}

// folderIn returns a folder in dir: which ones there are differs between systems.
func folderIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(entries, os.DirEntry.IsDir)
	if i < 0 {
		t.Fatalf("there is no folder in %s", dir)
	}
	return filepath.Join(dir, entries[i].Name())
}

func fileOwner(st os.FileInfo) uint32 { return st.Sys().(*syscall.Stat_t).Uid }
