// Package python knows what an image's Python needs: it finds the interpreter of an
// image, or of this host, and compiles modules in a sandbox, since a root is
// read-only when code runs on it.
//
// It starts no sandbox; its caller does (Run). The output of a sandbox is hostile: it is
// bounded, and each file can only go into a __pycache__ inside the directory.
package python

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

var (
	//go:embed compile_modules.py
	modulesScript string
	//go:embed compile_program.py
	programScript string
)

// A Run runs a command in a sandbox of an image, copies its standard output to
// out, and returns when it has ended.
type Run func(ctx context.Context, args []string, out *os.File) error

// Bytecode lists compiled files.
type Bytecode struct {
	Files map[string]string // path relative to the directory → SHA-256 of its content
	Bytes int64             // of all files
}

// A quota bounds what a hostile image may write.
type quota struct {
	files int
	bytes int64 // of names and contents
}

const (
	maxModules = 2 << 30 // bytes
	maxFile    = 64 << 20
	headerSize = 16 // bytes at the beginning of every file (PEP 552)
)

var ofProgram = quota{files: 1000, bytes: 64 << 20}

// CompileModules compiles modules with run and the interpreter exe of an image, and puts
// the bytecode into dir: so many files at most. Without folders it compiles all that the
// interpreter can import, and dir is the image's root; with one, as a sandbox sees it,
// what is in there, and dir is that folder. It returns what has arrived also if it fails.
func CompileModules(ctx context.Context, exe string, dir *os.Root, files int, run Run, folders ...string) (Bytecode, error) {
	args := append([]string{exe, "-s", "-B", "-W", "ignore", "-X", "utf8", "-c", modulesScript}, folders...)
	return compileInto(ctx, dir, args, run, quota{files, maxModules})
}

// CompileProgram compiles a program, a Python package at path in the sandbox,
// with the interpreter exe, and puts the bytecode into dir/__pycache__.
func CompileProgram(ctx context.Context, exe, path string, dir *os.Root, run Run) (Bytecode, error) {
	args := []string{exe, "-s", "-B", "-X", "utf8", "-c", programScript, path}
	b, err := compileInto(ctx, dir, args, run, ofProgram)
	if err == nil && len(b.Files) == 0 {
		err = errors.New("the image wrote no bytecode")
	}
	return b, err
}

// compileInto runs a command that sends bytecode, and stores it in a directory as it arrives.
// If that fails, the command is ended.
func compileInto(ctx context.Context, root *os.Root, args []string, run Run, limit quota) (b Bytecode, err error) {
	in, out, err := os.Pipe()
	if err != nil {
		return Bytecode{}, err
	}
	defer in.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		defer contain.Error("compiling in a sandbox", &err)
		defer out.Close()
		err = run(ctx, args, out)
	}()
	b.Files = map[string]string{}
	err = contain.Call("reading bytecode", func() error { return b.readFiles(root, bufio.NewReaderSize(in, 64<<10), limit) })
	if err != nil {
		cancel()
		in.Close()
	}
	return b, errors.Join(err, <-ended)
}

// readFiles stores the files that a script sends.
func (b *Bytecode) readFiles(root *os.Root, in io.Reader, limit quota) error {
	for total, files := int64(0), 0; ; {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading bytecode: %w", err)
		}
		nameLen, size := int64(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint32(head[4:]))
		if total += nameLen + size; nameLen > rootdir.MaxPath || size > maxFile || total > limit.bytes {
			return errors.New("the image writes more bytecode than the limits allow")
		}
		if files++; files > limit.files {
			return fmt.Errorf("with its bytecode the image has more files than its limit allows: %d more (TOOLCELL_IMAGE_MAX_FILES)", limit.files)
		}
		if size < headerSize {
			return fmt.Errorf("the image writes bytecode of %d bytes, which are too few", size)
		}
		buf := make([]byte, nameLen+size)
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("reading bytecode: %w", err)
		}
		name, content := string(buf[:nameLen]), buf[nameLen:]
		full, err := writeBytecode(root, name, content)
		if err != nil {
			return fmt.Errorf("adding bytecode %s: %w", rootdir.Quote(name), err)
		}
		sum := sha256.Sum256(content)
		b.Files[full] = hex.EncodeToString(sum[:])
		b.Bytes += size
	}
}

// writeBytecode writes one file, whose name comes from the sandbox: it must be
// DIR/__pycache__/NAME.pyc with an existing DIR.
func writeBytecode(root *os.Root, name string, content []byte) (full string, err error) {
	name, err = rootdir.Clean(name)
	if err != nil {
		return "", err
	}
	cache, base := path.Split(name)
	dir, pycache := path.Split(path.Clean(cache))
	if pycache != "__pycache__" || !strings.HasSuffix(base, ".pyc") {
		return "", errors.New("this is no place for bytecode")
	}
	real, err := rootdir.Resolve(root, dir)
	if err != nil {
		return "", err
	}
	cache = path.Join(real, pycache)
	info, err := root.Lstat(cache)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := rootdir.MakeInside(root, real, func() error { return rootdir.MakeDir(root, cache) }); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", errors.New("its folder is a file")
	}
	full = path.Join(cache, base)
	return full, rootdir.MakeInside(root, cache, func() error { return rootdir.ReplaceFile(root, full, content) })
}
