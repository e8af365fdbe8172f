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

// writes is a sandbox that writes a text.
func writes(text string) func(context.Context, *os.File) error {
	return func(_ context.Context, out *os.File) error {
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

func programRoot(t *testing.T) (*Store, *Root) {
	t.Helper()
	reg, s := newRegistry(t), openStore(t)
	return s, ensureAll(t, s, reg.push(t, "py:3", pythonImage(t)))[0]
}

func TestProgramIsCompiledOnce(t *testing.T) {
	s, root := programRoot(t)
	const one, other = "/host/runner-1", "/host/runner-2"
	if s.Program(root, one) != "" || !s.NeedsProgram(root, one) {
		t.Fatal("there is bytecode before it was made")
	}
	if err := s.AddProgram(ctx, root, one, writes(bytecodeOf("code"))); err != nil {
		t.Fatal(err)
	}
	dir := s.Program(root, one)
	file := filepath.Join(dir, "main.cpython-314.pyc")
	if got, err := os.ReadFile(file); err != nil || string(got) != "code" || filepath.Base(dir) != "runner-1.bytecode" {
		t.Errorf("%s: got %q, %v", file, got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("not every id of a sandbox can read it: %v, %v", info, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("not every id of a sandbox can read its folder: %v, %v", info, err)
	}
	if err := s.AddProgram(ctx, root, one, writes(bytecodeOf("again"))); err != nil || s.NeedsProgram(root, one) {
		t.Errorf("it is needed again: %v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != "code" {
		t.Errorf("it was made again: %q", got)
	}
	if s.Program(root, other) != "" || !s.NeedsProgram(root, other) {
		t.Error("another version of the program takes this one's")
	}
}

func TestProgramThatFailsIsTriedAgainLater(t *testing.T) {
	s, root := programRoot(t)
	const program = "/host/runner"
	broken := func(_ context.Context, out *os.File) error {
		_, _ = out.WriteString(bytecodeOf("half of the code")[:50])
		return errors.New("the sandbox broke")
	}
	if err := s.AddProgram(ctx, root, program, broken); err == nil || !strings.Contains(err.Error(), "the sandbox broke") {
		t.Errorf("got %v", err)
	}
	if s.Program(root, program) != "" || s.NeedsProgram(root, program) {
		t.Error("what failed is used, or tried again at once")
	}
	old := time.Now().Add(-2 * bytecodeRetry)
	if err := os.Chtimes(programPath(root, program), old, old); err != nil {
		t.Fatal(err)
	}
	if !s.NeedsProgram(root, program) {
		t.Error("it is never tried again")
	}
}

func TestEndlessProgramIsCut(t *testing.T) {
	s, root := programRoot(t)
	err := s.AddProgram(ctx, root, "/host/runner", func(ctx context.Context, out *os.File) error {
		for ctx.Err() == nil {
			if _, err := out.WriteString(bytecodeOf(strings.Repeat("x", 1<<20))); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "more bytecode than the limits allow") || s.Program(root, "/host/runner") != "" {
		t.Errorf("got %v", err)
	}
}

// TestProgramStaysInItsFolder has a sandbox that names files elsewhere.
func TestProgramStaysInItsFolder(t *testing.T) {
	for _, name := range []string{"../x.pyc", "x.pyc", "__pycache__/../../x.pyc", "../__pycache__/../__pycache__/x.py"} {
		s, root := programRoot(t)
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(name))), 4)
		err := s.AddProgram(ctx, root, "/host/runner", writes(string(head)+name+"code"))
		if err == nil || s.Program(root, "/host/runner") != "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCancelledProgramIsStillToBeDone(t *testing.T) {
	s, root := programRoot(t)
	ctx, cancel := context.WithCancel(ctx)
	err := s.AddProgram(ctx, root, "/host/runner", func(ctx context.Context, _ *os.File) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, context.Canceled) || !s.NeedsProgram(root, "/host/runner") {
		t.Errorf("got %v", err)
	}
}
