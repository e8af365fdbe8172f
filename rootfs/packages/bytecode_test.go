package packages

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
)

const (
	bytecode   = "0123456789abcdef code" // with something like a header
	compiledAs = "a/__pycache__/__init__.cpython-314.pyc"
)

// A compiler stands in for a sandbox that compiles the modules of a set.
type compiler struct {
	err  error    // of its sandbox, after the bytecode
	args []string // of the last command
	runs int
}

func (c *compiler) run(_ context.Context, args []string, out *os.File) error {
	c.args = args
	c.runs++
	head := binary.BigEndian.AppendUint32(nil, uint32(len(compiledAs)))
	head = binary.BigEndian.AppendUint32(head, uint32(len(bytecode)))
	_, err := out.WriteString(string(head) + compiledAs + bytecode)
	return errors.Join(err, c.err)
}

// newSet returns a set of the package a.
func newSet(t *testing.T) (*Store, *Set) {
	t.Helper()
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	set, err := s.Ensure(t.Context(), x.request("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, set
}

func TestBytecodeIsAddedOnce(t *testing.T) {
	s, set := newSet(t)
	if !s.NeedsBytecode(set) {
		t.Fatal("a new set needs none")
	}
	var c compiler
	for range 2 {
		if err := s.AddBytecode(t.Context(), set, c.run); err != nil {
			t.Fatal(err)
		}
		if s.NeedsBytecode(set) {
			t.Error("it is needed again")
		}
	}
	if c.runs != 1 || c.args[0] != set.Image.Python || !slices.Contains(c.args, Target) {
		t.Errorf("%d runs, the last of %q", c.runs, c.args)
	}
	if got, err := os.ReadFile(filepath.Join(set.Dir, compiledAs)); string(got) != bytecode {
		t.Errorf("got %q, %v", got, err)
	}
	if open := ostest.OpenFiles(t, set.Dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
}

func TestBytecodeThatFailsIsTriedAgainLater(t *testing.T) {
	s, set := newSet(t)
	c := compiler{err: errors.New("the sandbox broke")}
	const want = "compiling the packages: the sandbox broke"
	if err := s.AddBytecode(t.Context(), set, c.run); !errors.Is(err, c.err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if record, err := os.ReadFile(s.sets.bytecode(set.ID)); !strings.Contains(string(record), c.err.Error()) {
		t.Errorf("the record does not say why: %s, %v", record, err)
	}
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs != 1 || s.NeedsBytecode(set) {
		t.Errorf("tried again at once: %v, %d runs", err, c.runs)
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(s.sets.bytecode(set.ID), long, long); err != nil {
		t.Fatal(err)
	}
	c.err = nil
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs != 2 || s.NeedsBytecode(set) {
		t.Errorf("never tried again: %v, %d runs", err, c.runs)
	}
}

func TestCancelledBytecodeIsStillToBeDone(t *testing.T) {
	s, set := newSet(t)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := s.AddBytecode(ctx, set, func(ctx context.Context, _ []string, _ *os.File) error {
		cancel(stopped)
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || err.Error() != "stopped" || !s.NeedsBytecode(set) {
		t.Errorf("got %v", err)
	}
	var c compiler
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs != 1 {
		t.Errorf("the next time: %v, %d runs", err, c.runs)
	}
}

func TestBytecodeIsMadeByOneProcess(t *testing.T) {
	s, set := newSet(t)
	unlock, err := openStore(t, s.dir).cache.Try("bytecode-"+set.ID, state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	var c compiler
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs > 0 {
		t.Errorf("while another makes it: %v, %d runs", err, c.runs)
	}
	unlock()
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs != 1 {
		t.Errorf("afterwards: %v, %d runs", err, c.runs)
	}
}

// TestSetThatIsGoneGetsNoBytecode, nor does one whose packages are gone: code that imports
// them would find bytecode without modules.
func TestSetThatIsGoneGetsNoBytecode(t *testing.T) {
	s, set := newSet(t)
	var c compiler
	if err := os.RemoveAll(set.Dir); err != nil {
		t.Fatal(err)
	}
	if err := s.AddBytecode(t.Context(), set, c.run); !errors.Is(err, fs.ErrNotExist) || c.runs > 0 {
		t.Errorf("without its packages: %v, %d runs", err, c.runs)
	}
	if err := os.RemoveAll(s.sets.path(set.ID)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddBytecode(t.Context(), set, c.run); err != nil || c.runs > 0 || s.NeedsBytecode(set) {
		t.Errorf("without its folder: %v, %d runs", err, c.runs)
	}
}
