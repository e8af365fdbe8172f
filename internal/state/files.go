package state

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolcell/toolcell/internal/text"
)

// ReadRegular reads a regular file of at most maxBytes bytes, without a leading byte
// order mark. It opens with O_NONBLOCK, since a named pipe in place of the file
// would block for ever.
func ReadRegular(path string, maxBytes int64) ([]byte, error) {
	data, _, err := ReadExact(path, maxBytes)
	if errors.Is(err, syscall.ENOTDIR) { // a file where a folder would be: there is none
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err // editors on Windows leave a mark
}

// ReadUnlinked is ReadRegular for a file that others may have put there: a link in its place, which
// could lead to a file of the user's, is refused.
func ReadUnlinked(path string, maxBytes int64) ([]byte, error) {
	data, _, err := readExact(path, syscall.O_NOFOLLOW, maxBytes)
	switch {
	case errors.Is(err, syscall.ELOOP):
		err = errors.New("is a link")
	case errors.Is(err, syscall.ENOTDIR):
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}

// ReadExact is ReadRegular for a file that will be changed: it leaves a mark in place, and
// returns what the system knows of the file.
func ReadExact(path string, maxBytes int64) (data []byte, info fs.FileInfo, err error) {
	return readExact(path, 0, maxBytes)
}

func readExact(path string, flags int, maxBytes int64) (data []byte, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	switch {
	case info.IsDir():
		return nil, nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("is not a regular file")
	}
	data, err = io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		err = fmt.Errorf("is larger than %s", text.Size(maxBytes))
	}
	if err != nil {
		return nil, nil, err
	}
	return data, info, nil
}

// Reason is the text of a file error without the paths, for messages that already
// name the file.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err.Error()
	}
	return err.Error()
}

// Options say how a file is replaced. The zero value is for a file of this user alone
// that several processes may replace at once.
type Options struct {
	Mode  fs.FileMode // of the new file; 0600 if it is 0
	Exact bool        // Mode counts whatever the umask is

	// Locked says that the caller has a lock that covers the file. The temporary name
	// is then always the same (Unfinished), so that what a killed process left there,
	// which may be secret, does not outlast the next writing.
	Locked bool
	// Unsynced is for what can be made again, such as a cache: after a crash of the
	// host the file may be empty.
	Unsynced bool
	// TempDir is a folder of the same file system to write in; that of the file if empty.
	TempDir string
	// Finish, if not nil, is the last that is called before the file gets its name,
	// which it does not get if there is an error.
	Finish func(*os.File) error
}

// Unfinished is the name of a file while it is written under a lock.
func Unfinished(path string) string { return path + newSuffix }

const newSuffix = ".new"

// tempPrefix begins the names of files while they are written without a lock.
const tempPrefix = ".new-"

// isTemp reports whether a file of this name is unfinished, or was left by a killed process.
func isTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// Replace writes a file beside its place and renames it, so that others see the old
// file or the new one, and nothing in between. A link at path is replaced, not followed.
func Replace(path string, data []byte, o Options) error {
	temp := Unfinished(path)
	if !o.Locked {
		dir := cmp.Or(o.TempDir, filepath.Dir(path))
		temp = filepath.Join(dir, tempPrefix+filepath.Base(path)+"-"+rand.Text()) // which cannot be guessed
	}
	return replace(system{}, temp, path, data, o)
}

// ReplaceIn is Replace in a tree that others made: no link in it leads out. Its
// temporary name is in no image. The caller has a lock that covers the tree.
func ReplaceIn(root *os.Root, name string, data []byte, o Options) error {
	o.Locked = true
	return replace(root, path.Join(path.Dir(name), ".toolcell-new"), name, data, o)
}

// files are what replace needs of an *os.Root, or of the system.
type files interface {
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
	Rename(from, to string) error
	Remove(name string) error
}

type system struct{}

func (system) OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, mode)
}
func (system) Rename(from, to string) error { return os.Rename(from, to) }
func (system) Remove(name string) error     { return os.Remove(name) }

func replace(in files, temp, path string, data []byte, o Options) (err error) {
	if o.Locked {
		if err := in.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := in.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(o.Mode, 0o600))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = in.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if err == nil && o.Exact {
		err = f.Chmod(o.Mode)
	}
	if err == nil && !o.Unsynced {
		err = f.Sync()
	}
	if err == nil && o.Finish != nil {
		err = o.Finish(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return in.Rename(temp, path)
}
