package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestBytecodeIsCounted(t *testing.T) {
	root := unpacktest.Root(t, file("lib/m.py", ""))
	text := frame("/lib/__pycache__/a.pyc", bytecode) + frame("/lib/__pycache__/b.pyc", bytecode+"more")
	b, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, writes(text))
	if err != nil || len(b.Files) != 2 || b.Bytes != int64(2*len(bytecode)+len("more")) {
		t.Errorf("got %+v, %v", b, err)
	}
}

// TestBytecodeIsRefusedByItsLengths: what has to be held for a file is bounded before it is there.
func TestBytecodeIsRefusedByItsLengths(t *testing.T) {
	for name, head := range map[string]string{
		"a file of 64 MiB and a byte": "\x00\x00\x00\x16\x04\x00\x00\x01",
		"a name of 4096 bytes":        "\x00\x00\x10\x00\x00\x00\x00\x20",
	} {
		_, err := CompileModules(t.Context(), "/usr/bin/python3", unpacktest.Root(t), 100, writes(head))
		if err == nil || !strings.Contains(err.Error(), "more bytecode than the limits allow") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestBadBytecodeEndsTheCommand has a command that waits after what it wrote. What arrived before
// is kept.
func TestBadBytecodeEndsTheCommand(t *testing.T) {
	good := frame("/lib/__pycache__/a.pyc", bytecode)
	for name, c := range map[string]struct{ text, want string }{
		"no place": {frame("/lib/m.pyc", bytecode), "no place for bytecode"},
		"too few":  {frame("/lib/__pycache__/m.pyc", "short"), "which are too few"},
	} {
		root := unpacktest.Root(t, file("lib/m.py", ""))
		b, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, func(ctx context.Context, _ []string, out *os.File) error {
			if _, err := out.WriteString(good + c.text); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || len(b.Files) != 1 || b.Bytes != int64(len(bytecode)) {
			t.Errorf("%s: got %+v, %v; want %q", name, b, err, c.want)
		}
	}
}

func TestBytecodeCutShortAnywhereIsAnError(t *testing.T) {
	text := frame("/lib/__pycache__/m.pyc", bytecode)
	for end := 1; end < len(text); end++ {
		root := unpacktest.Root(t, file("lib/m.py", ""))
		b, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, writes(text[:end]))
		if err == nil || !strings.Contains(err.Error(), "reading bytecode") || len(b.Files) != 0 {
			t.Errorf("after %d bytes: got %+v, %v", end, b, err)
		}
	}
}

func TestPanicOfASandboxIsAnError(t *testing.T) {
	_, err := CompileModules(t.Context(), "/usr/bin/python3", unpacktest.Root(t), 100, func(context.Context, []string, *os.File) error {
		panic("a planted fault")
	})
	if !errors.Is(err, contain.ErrInternal) {
		t.Errorf("got %v", err)
	}
}

// TestCompilingLeavesNothingOpen: a server compiles again and again, and its own context ends late.
func TestCompilingLeavesNothingOpen(t *testing.T) {
	root := unpacktest.Root(t, file("lib/m.py", ""))
	var pipe string
	var given context.Context
	_, err := CompileModules(t.Context(), "/usr/bin/python3", root, 100, func(ctx context.Context, _ []string, out *os.File) (err error) {
		given = ctx
		pipe, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", out.Fd()))
		return err
	})
	if err != nil || !strings.HasPrefix(pipe, "pipe:") {
		t.Fatal(pipe, err)
	}
	if given.Err() == nil {
		t.Error("the command's context has not ended")
	}
	if open := ostest.OpenFiles(t, pipe); len(open) > 0 {
		t.Errorf("%q is open", open)
	}
}

// endsAfter is a context that ends once it has been asked so often.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFindPythonEndsWithItsContext: an image that was not searched to the end may have a Python.
func TestFindPythonEndsWithItsContext(t *testing.T) {
	folder := unpacktest.Root(t, dir("usr/bin"))
	for name, root := range map[string]*os.Root{"no folder": unpacktest.Root(t), "a folder": folder} {
		for left := range 2 { // the names python3 and python
			if got, err := Find(&endsAfter{t.Context(), left}, root, []string{"PATH=/usr/bin"}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, after %d: got %q, %v", name, left, got, err)
			}
		}
	}
	if got, err := Find(&endsAfter{t.Context(), 10}, folder, []string{"PATH=/usr/bin"}); !errors.Is(err, context.Canceled) {
		t.Errorf("among the numbers: got %q, %v", got, err)
	}
}
