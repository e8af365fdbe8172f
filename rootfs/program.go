package rootfs

import (
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
// the bytecode of the program at path, inside, to standard output. AddProgram
// reads that.
func (r *Root) CompileProgramArgs(path string) []string {
	return []string{r.Python, "-s", "-B", "-X", "utf8", "-c", compileProgram, path}
}

// programFile is where the bytecode of a program lies, whose name changes when
// its content does. An empty file there is an attempt that failed.
func programFile(root *Root, program string) string {
	return filepath.Join(filepath.Dir(root.Dir), filepath.Base(program)+"c")
}

// Program returns the file with the bytecode of a program for this root, or ""
// if there is none yet. Python starts it as it does the program.
func (s *Store) Program(root *Root, program string) string {
	file := programFile(root, program)
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return ""
	}
	return file
}

// NeedsProgram reports whether AddProgram has something to do. There is no
// place for it beside the host's own system.
func (s *Store) NeedsProgram(root *Root, program string) bool {
	if root.Digest == hostDigest || unix.Access(filepath.Dir(root.Dir), unix.W_OK) != nil {
		return false
	}
	info, err := os.Lstat(programFile(root, program))
	return err != nil || info.Size() == 0 && time.Since(info.ModTime()) > bytecodeRetry
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
	content, err := outputOf(ctx, compile)
	if ctx.Err() != nil {
		return context.Cause(ctx) // it is still to be done
	}
	if err != nil {
		content, err = nil, fmt.Errorf("compiling %s for %s: %w", filepath.Base(program), root.Ref, err)
	}
	return errors.Join(err, replaceWhole(programFile(root, program), content))
}

// outputOf returns what a sandbox writes.
func outputOf(ctx context.Context, start func(ctx context.Context, out *os.File) error) (content []byte, err error) {
	err = reading(ctx, start, func(in io.Reader) error {
		content, err = io.ReadAll(io.LimitReader(in, maxBytecodeFile+1))
		if err == nil && len(content) > maxBytecodeFile {
			err = errors.New("the image writes more bytecode than the limits allow")
		}
		return err
	})
	return content, err
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
