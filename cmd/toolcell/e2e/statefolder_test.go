package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrokenStateFolder breaks the state folder in every way that we could
// think of. The program works in spite of it, or says what to do.
func TestBrokenStateFolder(t *testing.T) {
	image := func(dir string) string {
		all, _ := filepath.Glob(filepath.Join(dir, "cache", "images", "rootfs", "host-*"))
		return all[0]
	}
	write := func(path, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	file := func(name string) func(string) error {
		return func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, name)), write(filepath.Join(dir, name), "x"))
		}
	}
	mode := func(name string, m os.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), m) }
	}
	const works, told = true, false
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		if h.name == "user-one-id" {
			return // nothing of it depends on the ids
		}
		root := h.cred == nil && os.Geteuid() == 0
		good := filepath.Join(h.home, "good")
		if _, errs, code := h.run(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": good}, "exec", "-c", "1"); code != 0 {
			t.Fatal(errs)
		}
		for name, tt := range map[string]struct {
			spoil func(dir string) error
			works bool
		}{
			"file as the folder": {func(dir string) error { return errors.Join(os.RemoveAll(dir), write(dir, "x")) }, told},
			"file as cache":      {file("cache"), told},
			"file as run":        {file("run"), told},
			"file as images":     {file("cache/images"), told},
			"file as the runner": {file("cache/runner"), told},
			"file as rootfs":     {file("cache/images/rootfs"), told},
			"file as locks":      {file("cache/images/locks"), told},
			"folder as the lock": {func(dir string) error {
				lock := filepath.Join(dir, "run", "lock")
				return errors.Join(os.Remove(lock), os.Mkdir(lock, 0o755))
			}, told},
			"image: not complete":    {func(dir string) error { return write(filepath.Join(image(dir), "image.json"), `{"format":1,"dig`) }, works},
			"image: file as root":    {func(dir string) error { r := image(dir) + "/root"; return errors.Join(os.RemoveAll(r), write(r, "x")) }, works},
			"image: folder, no json": {func(dir string) error { return os.Remove(image(dir) + "/image.json") }, works},
			"image: no root":         {func(dir string) error { return os.RemoveAll(image(dir) + "/root") }, works},
			"image: mode 0":          {func(dir string) error { return os.Chmod(image(dir)+"/root", 0) }, works},
			"image: link elsewhere": {func(dir string) error {
				name := image(dir)
				return errors.Join(os.RemoveAll(name), write(dir+"/../guard/image.json", "kept"), os.Symlink(dir+"/../guard", name))
			}, works},
			"no images":         {func(dir string) error { return os.RemoveAll(dir + "/cache/images") }, works},
			"no runner":         {func(dir string) error { return os.RemoveAll(dir + "/cache/runner") }, works},
			"the runner cut":    {func(dir string) error { return spoilRunner(dir, func(f string) error { return os.Truncate(f, 100) }) }, works},
			"the runner mode 0": {func(dir string) error { return spoilRunner(dir, func(f string) error { return os.Chmod(f, 0) }) }, works},
			"link": {func(dir string) error {
				return errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
			}, works},
			"link to nowhere": {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink("/nonexistent/x", dir)) }, told},
			"mode 0":          {func(dir string) error { return os.Chmod(dir, 0) }, root},
			"run read-only":   {mode("run", 0o500), root},
			"cache mode 0":    {mode("cache", 0), root},
			"another's":       {func(dir string) error { return chownAll(dir, 4242) }, told}, // code would import what is in its cache
			"another's run":   {func(dir string) error { return chownAll(dir+"/run", 4242) }, root},
			"garbage in run": {func(dir string) error {
				run := filepath.Join(dir, "run")
				return errors.Join(
					write(run+"/instance-a/lock", "junk"), write(run+"/instance-a/junk", "\xff\x00"),
					write(run+"/instance-a/00ff/state.json", `{"id":"00`), write(run+"/instance-a/00fe/state.json", `[]`), write(run+"/instance-a/00fc/state.json", `{}`),
					write(run+"/instance-a/00fd/state.json", ``), write(run+"/instance-a/no state/x", ``),
					write(run+"/instance-b/lock", ""), write(run+"/instance-b/aa/state.json", `{"id":"aa","init_process_pid":1}`),
					write(run+"/instance-c", "a file"), os.MkdirAll(run+"/instance-d/lock", 0o755),
					write(dir+"/../guard/lock", ""), write(dir+"/../guard/00ff/state.json", "{"), os.Symlink(dir+"/../guard", run+"/instance-e"),
				)
			}, works},
		} {
			t.Run(name, func(t *testing.T) {
				if strings.HasPrefix(name, "another's") && os.Geteuid() != 0 {
					t.Skip("needs root, to give files away")
				}
				home := filepath.Join(h.home, "spoil")
				dir := filepath.Join(home, "state")
				t.Cleanup(func() {
					// An ordinary user has to get into what was closed first.
					if out, err := exec.Command("/bin/sh", "-c", `chmod -R u+rwX "$1" && rm -rf "$1"`, "sh", home).CombinedOutput(); err != nil {
						t.Errorf("%v: %s", err, out)
					}
				})
				e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": dir}
				if out, err := exec.Command("/bin/sh", "-c", `mkdir "$1" && cp -a "$2" "$3" && chown --reference="$2" "$1"`, "sh", home, good, dir).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if err := tt.spoil(dir); err != nil {
					t.Fatal(err)
				}
				out, errs, code := h.run(t, e, "exec", "-q", "-c", "print('works')")
				switch {
				case strings.Contains(errs, "panic"):
					t.Errorf("crashed: %s", errs)
				case tt.works && (code != 0 || out != "works\n"):
					t.Errorf("exit code %d, %q, %s", code, out, errs)
				case !tt.works && (code != exitHost || !strings.Contains(errs, "TOOLCELL_STATE_DIR") || !strings.Contains(errs, h.home)):
					t.Errorf("exit code %d, %q, %s\nwant %d and a hint", code, out, errs, exitHost)
				}
				if _, err := os.Stat(home + "/guard"); err == nil {
					if left, _ := os.ReadDir(home + "/guard"); len(left) == 0 {
						t.Error("files behind a link were removed")
					}
				}
			})
		}
	})
}

func spoilRunner(dir string, spoil func(file string) error) error {
	all, err := filepath.Glob(filepath.Join(dir, "cache", "runner", "runner-*", "*.py"))
	for _, f := range all {
		err = errors.Join(err, os.Chmod(f, 0o644), spoil(f))
	}
	return err
}

func chownAll(dir string, id int) error {
	out, err := exec.Command("chown", "-R", "4242:4242", dir).CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return os.Chmod(dir, 0o700)
}

// TestStateFolderOnABadDisk has a disk of its own, which only root can mount.
func TestStateFolderOnABadDisk(t *testing.T) {
	h := firstHost(t)
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and unshare, to mount a small disk")
	}
	for name, tt := range map[string]struct{ mount, want string }{
		"read-only":       {`mount -t tmpfs -o ro none "$DISK"`, "read-only file system"},
		"full from begin": {`mount -t tmpfs -o size=4k none "$DISK"`, "no space left on device"},
		"full later":      {`mount -t tmpfs -o size=64k none "$DISK"`, "no space left on device"},
		"too few inodes":  {`mount -t tmpfs -o nr_inodes=25 none "$DISK"`, "no space left on device"},
		"read-only later": {`mount -t tmpfs none "$DISK" && "$@" && mount -o remount,ro "$DISK"`, "read-only file system"},
		// The count bounds what is written, should the disk be another.
		"full, image made": {
			`mount -t tmpfs -o size=200k none "$DISK" && "$@" && { dd if=/dev/zero of="$DISK/fill" bs=4k count=100 2> /dev/null; test -s "$DISK/fill"; }`,
			"no space left on device",
		},
	} {
		dir, err := os.MkdirTemp(h.home, "disk-")
		if err != nil {
			t.Fatal(err)
		}
		c := h.shell(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": dir, "DISK": dir}, tt.mount+` && "$@"`, "exec", "-c", "1")
		c.Path, c.Args = unshare, append([]string{"unshare", "-m"}, c.Args...)
		c.Args[2] = "/bin/sh"
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != exitHost || !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), "TOOLCELL_STATE_DIR") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestStateFolderRemovedWhileServing is what a cleaner of old files does.
func TestStateFolderRemovedWhileServing(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		dir := filepath.Join(h.home, "cleaned")
		e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": dir}
		c := h.serve(t, e)
		for _, gone := range []string{"", "", "run", "cache", "cache/images", "cache/runner", "run/lock", "run/instance-*/lock"} {
			c.python(t, "print('before')").want(t, "before")
			all, err := filepath.Glob(filepath.Join(dir, gone))
			if err != nil || len(all) == 0 {
				t.Fatalf("%q: %v, %v", gone, all, err)
			}
			for _, f := range all {
				// A sandbox that is being made ready may put a file into what is removed.
				waitFor(t, "the removal of "+f, func() bool { return os.RemoveAll(f) == nil })
			}
			if r := c.python(t, "print('after')"); r.isError {
				t.Errorf("without %q: %s", gone, r.text)
			}
		}
		// A process that starts now must not believe that the server is gone.
		h.serve(t, e).python(t, "print('other')").want(t, "other")
		c.python(t, "print('still')").want(t, "still")
		if all, _ := filepath.Glob(filepath.Join(dir, "run", "instance-*", "lock")); len(all) != 2 {
			t.Errorf("two servers have %v", all)
		}
	})
}
