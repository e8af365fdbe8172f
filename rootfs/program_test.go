package rootfs

import (
	"context"
	"errors"
	"os"
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

func programRoot(t *testing.T) (*Store, *Root) {
	t.Helper()
	reg, s := newRegistry(t), openStore(t)
	return s, ensureAll(t, s, reg.push(t, "py:3", pythonImage(t)))[0]
}

func TestProgramIsCompiledOnce(t *testing.T) {
	s, root := programRoot(t)
	const one, other = "/host/runner-1.py", "/host/runner-2.py"
	if s.Program(root, one) != "" || !s.NeedsProgram(root, one) {
		t.Fatal("there is bytecode before it was made")
	}
	if err := s.AddProgram(ctx, root, one, writes("code")); err != nil {
		t.Fatal(err)
	}
	file := s.Program(root, one)
	if got, err := os.ReadFile(file); err != nil || string(got) != "code" || !strings.HasSuffix(file, "runner-1.pyc") {
		t.Errorf("%s: got %q, %v", file, got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("not every id of a sandbox can read it: %v, %v", info, err)
	}
	if err := s.AddProgram(ctx, root, one, writes("again")); err != nil || s.NeedsProgram(root, one) {
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
	const program = "/host/runner.py"
	broken := func(_ context.Context, out *os.File) error {
		_, _ = out.WriteString("half of the co")
		return errors.New("the sandbox broke")
	}
	if err := s.AddProgram(ctx, root, program, broken); err == nil || !strings.Contains(err.Error(), "the sandbox broke") {
		t.Errorf("got %v", err)
	}
	if s.Program(root, program) != "" || s.NeedsProgram(root, program) {
		t.Error("what failed is used, or tried again at once")
	}
	old := time.Now().Add(-2 * bytecodeRetry)
	if err := os.Chtimes(programFile(root, program), old, old); err != nil {
		t.Fatal(err)
	}
	if !s.NeedsProgram(root, program) {
		t.Error("it is never tried again")
	}
}

func TestEndlessProgramIsCut(t *testing.T) {
	s, root := programRoot(t)
	err := s.AddProgram(ctx, root, "/host/runner.py", func(ctx context.Context, out *os.File) error {
		for ctx.Err() == nil {
			if _, err := out.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "more bytecode than the limits allow") || s.Program(root, "/host/runner.py") != "" {
		t.Errorf("got %v", err)
	}
}

func TestCancelledProgramIsStillToBeDone(t *testing.T) {
	s, root := programRoot(t)
	ctx, cancel := context.WithCancel(ctx)
	err := s.AddProgram(ctx, root, "/host/runner.py", func(ctx context.Context, _ *os.File) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, context.Canceled) || !s.NeedsProgram(root, "/host/runner.py") {
		t.Errorf("got %v", err)
	}
}
