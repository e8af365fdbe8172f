package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/rootfs/python"
)

// A program that is started again and again in an image takes Python longer to
// compile than to run. So the image's own Python compiles it once, in a sandbox
// in which nothing else has run, and the bytecode lies beside the root: it is
// used in sandboxes of this image alone.

// programPath is where the bytecode of a program lies, whose name changes when
// its content does. A file there is an attempt that failed.
func (r *Root) programPath(program string) string {
	return filepath.Join(filepath.Dir(r.Dir), filepath.Base(program)+".bytecode")
}

// ProgramBytecode returns the folder with the bytecode of a program, or "" if
// there is none yet. It belongs on the package's __pycache__.
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
		return time.Since(info.ModTime()) > bytecodeRetry
	}
	return r.ProgramBytecode(program) == ""
}

// AddProgramBytecode keeps the bytecode of a program, a Python package that is
// at inside in the sandboxes in which run compiles it. If another process does
// the same already, that one is left to it. After a failure, the next attempt is
// an hour later.
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
	temp := newName(path)
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
		return context.Cause(ctx) // it is still to be done
	}
	if err != nil {
		err = fmt.Errorf("compiling %s for %s: %w", filepath.Base(program), r.Ref, err)
		return errors.Join(err, os.RemoveAll(temp), os.RemoveAll(path), writeFile(path, nil))
	}
	return errors.Join(os.RemoveAll(path), os.Rename(filepath.Join(temp, "__pycache__"), path))
}
