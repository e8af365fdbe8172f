package rootfs

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
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

// Official Python images have no bytecode, and in a read-only root Python
// compiles every module at each import. So the image's own Python compiles what
// it can import once, in a sandbox, and what it writes is put into the root.

//go:embed compile.py
var compileScript string

// CompileArgs is the command, for a sandbox of this root, that writes its
// bytecode to standard output. AddBytecode reads that.
func (r *Root) CompileArgs() []string {
	return []string{r.Python, "-s", "-B", "-W", "ignore", "-X", "utf8", "-c", compileScript}
}

// What a hostile image may write at the most.
const (
	maxBytecode     = 2 << 30
	maxBytecodeFile = 64 << 20
)

// bytecodeRetry is how long a failed attempt is not repeated.
const bytecodeRetry = time.Hour

// bytecodeRecord is bytecode.json beside a root.
type bytecodeRecord struct {
	Format int               `json:"format"`
	Files  map[string]string `json:"files,omitempty"` // path relative to the root → SHA-256 of its content
	Bytes  int64             `json:"bytes"`
	Error  string            `json:"error,omitempty"`
}

func bytecodeFile(root *Root) string {
	return filepath.Join(filepath.Dir(root.Dir), "bytecode.json")
}

// NeedsBytecode reports whether AddBytecode has something to do for a root. The
// host's own system is not ours to change, nor is another user's store.
func (s *Store) NeedsBytecode(root *Root) bool {
	if root.Digest == hostDigest || unix.Access(filepath.Dir(root.Dir), unix.W_OK) != nil {
		return false
	}
	file := bytecodeFile(root)
	var rec bytecodeRecord
	if err := readJSON(file, &rec); err != nil || rec.Format != format {
		return true
	}
	info, err := os.Stat(file)
	return err == nil && rec.Error != "" && time.Since(info.ModTime()) > bytecodeRetry
}

// AddBytecode puts bytecode into a root: compile starts root.CompileArgs in a
// sandbox whose standard output it copies to out. Another process that does the
// same already is left to it. What has arrived when it fails stays.
func (s *Store) AddBytecode(ctx context.Context, root *Root, compile func(ctx context.Context, out *os.File) error) error {
	unlock, err := s.lockFor("bytecode", root)
	if unlock == nil {
		return err
	}
	defer unlock()
	if !s.NeedsBytecode(root) {
		return nil
	}
	dir, err := os.OpenRoot(root.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	rec := bytecodeRecord{Format: format, Files: map[string]string{}}
	err = reading(ctx, compile, func(in io.Reader) error { return rec.read(dir, bufio.NewReaderSize(in, 64<<10)) })
	if ctx.Err() != nil {
		return context.Cause(ctx) // it is still to be done
	}
	if err != nil {
		rec.Error = err.Error()
		err = fmt.Errorf("compiling the modules of %s: %w", root.Ref, err)
	}
	return errors.Join(err, writeJSON(bytecodeFile(root), rec))
}

// lockFor lets one process at a time make something for a root. Unlock is nil if
// another is at it, or on an error.
func (s *Store) lockFor(what string, root *Root) (unlock func(), err error) {
	unlock, err = s.tryLock(what+"-"+filepath.Base(filepath.Dir(root.Dir)), unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return unlock, err
}

// read takes in the files that the script writes.
func (rec *bytecodeRecord) read(root *os.Root, in io.Reader) error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading bytecode: %w", err)
		}
		nameLen, size := int64(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint32(head[4:]))
		if rec.Bytes += size; nameLen > rootdir.MaxPath || size > maxBytecodeFile || rec.Bytes > maxBytecode {
			return errors.New("the image writes more bytecode than the limits allow")
		}
		buf := make([]byte, nameLen+size)
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("reading bytecode: %w", err)
		}
		name, content := string(buf[:nameLen]), buf[nameLen:]
		full, err := placeBytecode(root, name, content)
		if err != nil {
			return fmt.Errorf("adding bytecode %s: %w", rootdir.Quote(name), err)
		}
		sum := sha256.Sum256(content)
		rec.Files[full] = hex.EncodeToString(sum[:])
	}
}

// placeBytecode writes one file, whose name comes from the sandbox: it must be
// DIR/__pycache__/NAME.pyc with a DIR that is there.
func placeBytecode(root *os.Root, name string, content []byte) (full string, err error) {
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
