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

	"github.com/toolcell/toolcell/rootfs/python"
)

const bytecode = "0123456789abcdef code" // with something like a header

// frames is what the script in an image would write: names and contents.
func frames(pairs ...string) python.Run {
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
	if !root.NeedsBytecode(t.Context()) {
		t.Fatal("a new image needs none")
	}
	if err := root.AddBytecode(ctx, frames("/lib/__pycache__/m.cpython-314.pyc", bytecode)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root.Dir, "lib/__pycache__/m.cpython-314.pyc"))
	if err != nil || string(got) != bytecode {
		t.Errorf("got %q, %v", got, err)
	}
	lib, err := os.Stat(filepath.Join(root.Dir, "lib"))
	if err != nil || lib.Mode().Perm() != 0o555 || !lib.ModTime().Equal(closed.ModTime) {
		t.Errorf("the directory has changed: %v %v", lib, err)
	}
	if root.NeedsBytecode(t.Context()) {
		t.Error("it is needed again")
	}
	if err := root.AddBytecode(ctx, func(context.Context, []string, *os.File) error { return errors.New("called again") }); err != nil {
		t.Error(err)
	}
}

func TestBytecodeThatFailsIsTriedAgainLater(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("lib/m.py", ""))))
	root := ensureAll(t, s, ref)[0]
	broken := func(ctx context.Context, args []string, out *os.File) error {
		return errors.Join(frames("/lib/__pycache__/m.pyc", bytecode)(ctx, args, out), errors.New("the sandbox broke"))
	}
	if err := root.AddBytecode(ctx, broken); err == nil || !strings.Contains(err.Error(), "the sandbox broke") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(root.Dir, "lib/__pycache__/m.pyc")); err != nil {
		t.Errorf("what had arrived is gone: %v", err)
	}
	if root.NeedsBytecode(t.Context()) {
		t.Error("tried again at once")
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(root.bytecodeFile(), long, long); err != nil {
		t.Fatal(err)
	}
	if !root.NeedsBytecode(t.Context()) {
		t.Error("never tried again")
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
	if !errors.Is(err, context.Canceled) || !root.NeedsBytecode(t.Context()) {
		t.Errorf("got %v", err)
	}
}

// TestBytecodeCountsAgainstTheLimit: an image's files and its bytecode are no more
// than MaxEntries.
func TestBytecodeCountsAgainstTheLimit(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	s.MaxEntries = 10
	root := ensureAll(t, s, reg.push(t, "py:3", pythonImage(t, pack(t, file("lib/m.py", "")))))[0]
	var all []string
	for tag := range strings.FieldsSeq("a b c d e f g h i j") {
		all = append(all, "/lib/__pycache__/m."+tag+".pyc", bytecode)
	}
	if err := root.AddBytecode(ctx, frames(all...)); err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_FILES") {
		t.Errorf("got %v", err)
	}
	files := 0
	if err := filepath.WalkDir(root.Dir+"/lib", func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}); err != nil || files < 2 || files >= 10 {
		t.Errorf("%d files in lib, %v", files, err)
	}
}

// writes is a sandbox that writes a text.
func writes(text string) python.Run {
	return func(_ context.Context, _ []string, out *os.File) error {
		_, err := out.WriteString(text)
		return err
	}
}

// bytecodeOf is how a sandbox writes the bytecode of a module.
func bytecodeOf(content string) string {
	const name = "__pycache__/main.cpython-314.pyc"
	head := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
	return string(binary.BigEndian.AppendUint32(head, uint32(len(content)))) + name + content
}

func programRoot(t *testing.T) *Root {
	t.Helper()
	reg, s := newRegistry(t), openStore(t)
	return ensureAll(t, s, reg.push(t, "py:3", pythonImage(t)))[0]
}

func TestProgramIsCompiledOnce(t *testing.T) {
	root := programRoot(t)
	const one, other = "/host/runner-1", "/host/runner-2"
	if root.ProgramBytecode(one) != "" || !root.NeedsProgramBytecode(one) {
		t.Fatal("there is bytecode before it was made")
	}
	if err := root.AddProgramBytecode(ctx, one, "/runner", writes(bytecodeOf(bytecode))); err != nil {
		t.Fatal(err)
	}
	dir := root.ProgramBytecode(one)
	file := filepath.Join(dir, "main.cpython-314.pyc")
	if got, err := os.ReadFile(file); err != nil || string(got) != bytecode || filepath.Base(dir) != "runner-1.bytecode" {
		t.Errorf("%s: got %q, %v", file, got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("not every id of a sandbox can read it: %v, %v", info, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("not every id of a sandbox can read its folder: %v, %v", info, err)
	}
	if err := root.AddProgramBytecode(ctx, one, "/runner", writes(bytecodeOf("another "+bytecode))); err != nil || root.NeedsProgramBytecode(one) {
		t.Errorf("it is needed again: %v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != bytecode {
		t.Errorf("it was made again: %q", got)
	}
	if root.ProgramBytecode(other) != "" || !root.NeedsProgramBytecode(other) {
		t.Error("another version of the program takes this one's")
	}
}

func TestProgramThatFailsIsTriedAgainLater(t *testing.T) {
	root := programRoot(t)
	const program = "/host/runner"
	broken := func(_ context.Context, _ []string, out *os.File) error {
		_, _ = out.WriteString(bytecodeOf(bytecode)[:50])
		return errors.New("the sandbox broke")
	}
	if err := root.AddProgramBytecode(ctx, program, "/runner", broken); err == nil || !strings.Contains(err.Error(), "the sandbox broke") {
		t.Errorf("got %v", err)
	}
	if root.ProgramBytecode(program) != "" || root.NeedsProgramBytecode(program) {
		t.Error("what failed is used, or tried again at once")
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(root.programPath(program), old, old); err != nil {
		t.Fatal(err)
	}
	if !root.NeedsProgramBytecode(program) {
		t.Error("it is never tried again")
	}
}

func TestCancelledProgramIsStillToBeDone(t *testing.T) {
	root := programRoot(t)
	ctx, cancel := context.WithCancel(ctx)
	err := root.AddProgramBytecode(ctx, "/host/runner", "/runner", func(ctx context.Context, _ []string, _ *os.File) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, context.Canceled) || !root.NeedsProgramBytecode("/host/runner") {
		t.Errorf("got %v", err)
	}
}
