package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/python"
	"golang.org/x/sys/unix"
)

// Official Python images have no bytecode, and in a read-only root Python compiles each
// module at every import. So the image's own Python compiles all modules once, in a
// sandbox, and its output is added to the root.

const bytecodeName = "bytecode.json"

// bytecodeRecord is bytecode.json, a file beside a root.
type bytecodeRecord struct {
	Format int               `json:"format"`
	Files  map[string]string `json:"files,omitempty"` // path relative to the root → SHA-256 of its content
	Bytes  int64             `json:"bytes"`
	Error  string            `json:"error,omitempty"`
}

func (r *Root) bytecodeFile() string { return filepath.Join(filepath.Dir(r.Dir), bytecodeName) }

// NeedsBytecode reports whether AddBytecode has something to do.
func (r *Root) NeedsBytecode(ctx context.Context) bool {
	if !r.changeable() {
		return false
	}
	var rec struct { // bytecodeRecord without its files, which are many
		Format int    `json:"format"`
		Error  string `json:"error"`
	}
	if err := cachedir.ReadList(ctx, r.bytecodeFile(), &rec); err != nil || rec.Format != format {
		return true
	}
	return rec.Error != "" && cachedir.Due(r.bytecodeFile())
}

// AddBytecode adds the bytecode of all modules to the root: run compiles them in a sandbox.
// It returns at once if another process is doing the same. After a failure, the files that
// have arrived stay, and the next attempt is an hour later.
func (r *Root) AddBytecode(ctx context.Context, run python.Run) error {
	unlock, err := r.lock("bytecode")
	if unlock == nil {
		return err
	}
	defer unlock()
	if !r.NeedsBytecode(ctx) {
		return nil
	}
	dir, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	compiled, err := python.CompileModules(ctx, r.Python, dir, r.spare, run)
	if ctx.Err() != nil {
		return context.Cause(ctx) // no failure: the next attempt need not wait
	}
	rec := bytecodeRecord{Format: format, Files: compiled.Files, Bytes: compiled.Bytes}
	if err != nil {
		rec.Error = err.Error()
		err = fmt.Errorf("compiling the modules of %s: %w", r.Ref, err)
	}
	return errors.Join(err, cachedir.WriteJSON(r.bytecodeFile(), rec))
}

// changeable reports whether files can be added to the root. The host's own system and
// another user's store are not ours to change.
func (r *Root) changeable() bool {
	return r.Digest != hostDigest && unix.Access(filepath.Dir(r.Dir), unix.W_OK) == nil
}

// lock lets one process at a time add something to the root. Unlock is nil if another
// process has the lock, or on an error.
func (r *Root) lock(what string) (unlock func(), err error) {
	return r.cache.IfFree(what + "-" + filepath.Base(filepath.Dir(r.Dir)))
}

// For a program that is started again and again, Python takes longer to compile than to
// run it. So the image's own Python compiles it once, in a sandbox in which nothing else
// has run, and the bytecode is kept beside the root, only for sandboxes of this image.

// programPath is the folder of a program's bytecode. The program's name changes with its
// content. A file in place of the folder records a failed attempt.
func (r *Root) programPath(program string) string {
	return filepath.Join(filepath.Dir(r.Dir), filepath.Base(program)+".bytecode")
}

// ProgramBytecode returns the folder with the bytecode of a program, to be mounted on the
// package's __pycache__, or "" if there is none yet.
func (r *Root) ProgramBytecode(program string) string {
	path := r.programPath(program)
	if files, err := os.ReadDir(path); err != nil || len(files) == 0 {
		return ""
	}
	return path
}

// NeedsProgramBytecode reports whether AddProgramBytecode has something to do.
func (r *Root) NeedsProgramBytecode(program string) bool {
	if !r.changeable() {
		return false
	}
	info, err := os.Lstat(r.programPath(program))
	if err == nil && !info.IsDir() {
		return cachedir.Due(r.programPath(program))
	}
	return r.ProgramBytecode(program) == ""
}

// AddProgramBytecode stores the bytecode of a program, a Python package whose path in the
// sandboxes of run is inside. It returns at once if another process is doing the same.
// After a failure, the next attempt is an hour later.
func (r *Root) AddProgramBytecode(ctx context.Context, program, inside string, run python.Run) error {
	unlock, err := r.lock("program")
	if unlock == nil {
		return err
	}
	defer unlock()
	if !r.NeedsProgramBytecode(program) {
		return nil
	}
	path := r.programPath(program)
	temp := state.Unfinished(path)
	defer os.RemoveAll(temp)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o755)); err != nil {
		return err
	}
	dir, err := os.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = python.CompileProgram(ctx, r.Python, inside, dir, run)
	if ctx.Err() != nil {
		return context.Cause(ctx) // no failure: the next attempt need not wait
	}
	if err != nil {
		err = fmt.Errorf("compiling %s for %s: %w", filepath.Base(program), r.Ref, err)
		return errors.Join(err, os.RemoveAll(temp), os.RemoveAll(path), cachedir.WriteFile(path, nil))
	}
	return errors.Join(os.RemoveAll(path), os.Rename(filepath.Join(temp, "__pycache__"), path))
}
