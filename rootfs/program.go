package rootfs

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A program that is started again and again in an image takes Python longer to
// compile than to run. So the image's own Python compiles it once, in a sandbox
// in which nothing else has run, and the bytecode lies beside the root: it is
// used in sandboxes of this image alone.

//go:embed compile_program.py
var compileProgram string

// CompileProgramArgs is the command, for a sandbox of this root, that writes
// the bytecode of the program, a Python package at path inside, to standard
// output. AddProgram reads that.
func (r *Root) CompileProgramArgs(path string) []string {
	return []string{r.Python, "-s", "-B", "-X", "utf8", "-c", compileProgram, path}
}

// maxProgram is what a hostile image may write as the bytecode of a program.
const maxProgram = 64 << 20

// programPath is where the bytecode of a program lies, whose name changes when
// its content does. A file there is an attempt that failed.
func programPath(root *Root, program string) string {
	return filepath.Join(filepath.Dir(root.Dir), filepath.Base(program)+".bytecode")
}

// Program returns the folder with the bytecode of a program for this root, or
// "" if there is none yet. It belongs on the package's __pycache__.
func (s *Store) Program(root *Root, program string) string {
	path := programPath(root, program)
	if files, err := os.ReadDir(path); err != nil || len(files) == 0 {
		return ""
	}
	return path
}

// NeedsProgram reports whether AddProgram has something to do. There is no
// place for it beside the host's own system.
func (s *Store) NeedsProgram(root *Root, program string) bool {
	if root.Digest == hostDigest || unix.Access(filepath.Dir(root.Dir), unix.W_OK) != nil {
		return false
	}
	info, err := os.Lstat(programPath(root, program))
	if err == nil && !info.IsDir() {
		return time.Since(info.ModTime()) > bytecodeRetry
	}
	return s.Program(root, program) == ""
}

// AddProgram keeps the bytecode of a program for a root: compile starts
// root.CompileProgramArgs in a sandbox whose standard output it copies to out.
// Another process that does the same already is left to it. A failure is
// remembered for an hour.
func (s *Store) AddProgram(ctx context.Context, root *Root, program string, compile func(ctx context.Context, out *os.File) error) error {
	unlock, err := s.lockFor("program", root)
	if unlock == nil {
		return err
	}
	defer unlock()
	if !s.NeedsProgram(root, program) {
		return nil
	}
	path := programPath(root, program)
	temp := newName(path)
	defer os.RemoveAll(temp)
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o755)); err != nil {
		return err
	}
	err = readProgram(ctx, temp, compile)
	if ctx.Err() != nil {
		return context.Cause(ctx) // it is still to be done
	}
	if err != nil {
		err = fmt.Errorf("compiling %s for %s: %w", filepath.Base(program), root.Ref, err)
		return errors.Join(err, os.RemoveAll(temp), os.RemoveAll(path), replaceWhole(path, nil))
	}
	return errors.Join(os.RemoveAll(path), os.Rename(filepath.Join(temp, "__pycache__"), path))
}

// readProgram writes the bytecode that a sandbox gives into dir/__pycache__.
func readProgram(ctx context.Context, dir string, compile func(ctx context.Context, out *os.File) error) error {
	inside, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer inside.Close()
	rec := bytecodeRecord{Files: map[string]string{}}
	return reading(ctx, compile, func(in io.Reader) error {
		limited := &io.LimitedReader{R: in, N: maxProgram}
		err := rec.read(inside, bufio.NewReader(limited))
		if limited.N <= 0 {
			return errors.New("the image writes more bytecode than the limits allow")
		}
		if err == nil && len(rec.Files) == 0 {
			return errors.New("the image wrote no bytecode")
		}
		return err
	})
}

// reading starts a sandbox and takes in what it writes while it runs. If that
// fails, the sandbox is ended; it has ended in any case when this returns.
func reading(ctx context.Context, start func(ctx context.Context, out *os.File) error, take func(in io.Reader) error) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := start(ctx, out)
		out.Close()
		ended <- err
	}()
	if err = take(in); err != nil {
		cancel()
		in.Close()
	}
	return errors.Join(err, <-ended)
}
