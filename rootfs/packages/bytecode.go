package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/python"
	"golang.org/x/sys/unix"
)

// bytecodeRecord is bytecode.json.
type bytecodeRecord struct {
	Bytes int64  `json:"bytes"`
	Error string `json:"error,omitempty"`
}

func (d setDir) bytecode(name string) string { return filepath.Join(d.path(name), "bytecode.json") }

// NeedsBytecode reports whether AddBytecode has something to do.
func (s *Store) NeedsBytecode(set *Set) bool {
	file := s.sets.bytecode(set.ID)
	rec, err := s.bytecode.Read(file)
	if err != nil {
		return unix.Access(s.sets.path(set.ID), unix.W_OK) == nil
	}
	return rec.Error != "" && cachedir.Due(file)
}

// AddBytecode adds the bytecode of its modules to a set, which may be in use: run compiles
// them in a sandbox that sees the set at Target. It returns at once if another process is
// doing the same. After a failure, the next attempt is an hour later.
func (s *Store) AddBytecode(ctx context.Context, set *Set, run python.Run) error {
	unlock, err := s.cache.IfFree("bytecode-" + set.ID)
	if unlock == nil {
		return err
	}
	defer unlock()
	if !s.NeedsBytecode(set) {
		return nil
	}
	dir, err := os.OpenRoot(set.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	compiled, err := python.CompileModules(ctx, set.Image.Python, dir, maxFiles, run, Target)
	if ctx.Err() != nil {
		return context.Cause(ctx) // it is still to be done
	}
	rec := bytecodeRecord{Bytes: compiled.Bytes}
	if err != nil {
		rec.Error = err.Error()
		err = fmt.Errorf("compiling the packages: %w", err)
	}
	return errors.Join(err, cachedir.WriteJSON(s.sets.bytecode(set.ID), rec))
}
