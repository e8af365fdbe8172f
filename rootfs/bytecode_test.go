package rootfs

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// frames is what the script in an image would write: names and contents.
func frames(pairs ...string) Run {
	return func(_ context.Context, _ []string, out *os.File) error {
		for i := 0; i < len(pairs); i += 2 {
			head := binary.BigEndian.AppendUint32(nil, uint32(len(pairs[i])))
			head = binary.BigEndian.AppendUint32(head, uint32(len(pairs[i+1])))
			if _, err := out.WriteString(string(head) + pairs[i] + pairs[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestBytecodeIsAddedOnce(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	closed := dir("lib")
	closed.Mode = 0o555
	closed.ModTime = time.Unix(1e9, 0)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, closed, file("lib/m.py", "x = 1"))))
	root := ensureAll(t, s, ref)[0]
	if !root.NeedsBytecode() {
		t.Fatal("a new image needs none")
	}
	if err := root.AddBytecode(ctx, frames("/lib/__pycache__/m.cpython-314.pyc", "code")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root.Dir, "lib/__pycache__/m.cpython-314.pyc"))
	if err != nil || string(got) != "code" {
		t.Errorf("got %q, %v", got, err)
	}
	lib, err := os.Stat(filepath.Join(root.Dir, "lib"))
	if err != nil || lib.Mode().Perm() != 0o555 || !lib.ModTime().Equal(closed.ModTime) {
		t.Errorf("the directory has changed: %v %v", lib, err)
	}
	if root.NeedsBytecode() {
		t.Error("it is needed again")
	}
	if err := root.AddBytecode(ctx, func(context.Context, []string, *os.File) error { return errors.New("called again") }); err != nil {
		t.Error(err)
	}
}

// TestBytecodeStaysInItsPlace: the names come from a sandbox, where a hostile
// image can write what it likes.
func TestBytecodeStaysInItsPlace(t *testing.T) {
	reg := newRegistry(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t,
		file("lib/m.py", ""), symlink("up", "../../.."), symlink("abs", "/"), symlink("lib2", "lib"),
		dir("l"), symlink("l/__pycache__", "/lib"), file("f/__pycache__", "a file"),
	)))
	for name, want := range map[string]string{
		"/lib/__pycache__/m.pyc":                        "",
		"lib/__pycache__/m.pyc":                         "",
		"/lib2/__pycache__/m.pyc":                       "",
		"/../../lib/__pycache__/m.pyc":                  "",
		"/lib/m.py":                                     "no place",
		"/lib/m.pyc":                                    "no place",
		"/lib/__pycache__/m.py":                         "no place",
		"/lib/__pycache__/../m.pyc":                     "no place",
		"/none/__pycache__/m.pyc":                       "not exist",
		"/up/__pycache__/m.pyc":                         "", // the root's own "/"
		"/abs/__pycache__/m.pyc":                        "",
		"/l/__pycache__/m.pyc":                          "is a file",
		"/f/__pycache__/m.pyc":                          "is a file",
		"/lib/__pycache__/" + strings.Repeat("x", 5000): "limits",
		"":                           "empty",
		"/lib/__pycache__/a\x00.pyc": "NUL",
	} {
		s := openStore(t)
		root := ensureAll(t, s, ref)[0]
		err := root.AddBytecode(ctx, frames(name, "code"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", name, err, want)
		}
		for _, outside := range []string{filepath.Dir(root.Dir), s.dir, filepath.Dir(s.dir)} {
			if _, err := os.Lstat(filepath.Join(outside, "__pycache__")); err == nil {
				t.Errorf("%q made %s/__pycache__", name, outside)
			}
		}
	}
}

func TestBytecodeThatFailsIsTriedAgainLater(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("lib/m.py", ""))))
	root := ensureAll(t, s, ref)[0]
	broken := func(ctx context.Context, args []string, out *os.File) error {
		return errors.Join(frames("/lib/__pycache__/m.pyc", "code")(ctx, args, out), errors.New("the sandbox broke"))
	}
	if err := root.AddBytecode(ctx, broken); err == nil || !strings.Contains(err.Error(), "the sandbox broke") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(root.Dir, "lib/__pycache__/m.pyc")); err != nil {
		t.Errorf("what had arrived is gone: %v", err)
	}
	if root.NeedsBytecode() {
		t.Error("tried again at once")
	}
	long := time.Now().Add(-2 * bytecodeRetry)
	if err := os.Chtimes(root.bytecodeFile(), long, long); err != nil {
		t.Fatal(err)
	}
	if !root.NeedsBytecode() {
		t.Error("never tried again")
	}
}

func TestBytecodeCutShortIsAnError(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	root := ensureAll(t, s, ref)[0]
	err := root.AddBytecode(ctx, func(_ context.Context, _ []string, out *os.File) error {
		_, err := out.WriteString("\x00\x00\x00\x05\x00\x00\x00\x05abc")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "reading bytecode") {
		t.Errorf("got %v", err)
	}
}

func TestCancelledBytecodeIsStillToBeDone(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t))
	root := ensureAll(t, s, ref)[0]
	ctx, cancel := context.WithCancel(ctx)
	err := root.AddBytecode(ctx, func(ctx context.Context, _ []string, _ *os.File) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !root.NeedsBytecode() {
		t.Errorf("got %v", err)
	}
}
