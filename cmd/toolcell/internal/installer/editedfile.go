package installer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/state"
)

// maxEdited bounds a file that is read to be changed, as discovery does.
const maxEdited = 16 << 20

// An editedFile is a file of another program that is to be changed: it keeps
// its mode, its owner, and its place behind symbolic links, and is whole at
// every moment.
type editedFile struct {
	path          string // as it is known
	real          string // what links lead to
	before, after []byte
	mode          fs.FileMode // 0 if there is no file
	uid, gid      int
	isNew         bool     // there is no file yet, whatever mode it is to get
	madeDirs      []string // that write made for it, the innermost first
}

func openEdited(path string) (*editedFile, error) {
	f := &editedFile{path: path, real: path}
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		f.isNew = true
		return f, nil
	} else if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if f.real, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("%s is a link that leads nowhere; remove or correct it", path)
		}
	}
	before, info, err := state.ReadExact(f.real, maxEdited)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %s", settings.FromHome(path), state.Reason(err))
	}
	f.before = before
	f.after, f.mode = f.before, info.Mode().Perm()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.uid, f.gid = int(st.Uid), int(st.Gid)
	}
	return f, nil
}

func (f *editedFile) changed() bool { return !bytes.Equal(f.before, f.after) }

// write puts the new text in the file's place. A file that is new is for its
// owner alone: it may hold secrets.
func (f *editedFile) write() error {
	if !f.changed() && !(f.isNew && f.mode != 0) { // an empty file is one too
		return nil
	}
	dir := filepath.Dir(f.real)
	f.madeDirs = missingDirs(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder %s: %s", settings.FromHome(dir), state.Reason(err))
	}
	// Clients write their files as well.
	finish := func(temp *os.File) error {
		if f.mode != 0 {
			if err := errors.Join(temp.Chown(f.uid, f.gid), temp.Chmod(f.mode)); err != nil {
				return err
			}
		}
		if now, err := openEdited(f.path); err != nil || !bytes.Equal(now.before, f.before) {
			return errors.Join(errors.New("it changed in the meantime; end the client and try again"), err)
		}
		return nil
	}
	if err := state.Replace(f.real, f.after, state.Options{Finish: finish}); err != nil {
		if open, ok := errors.AsType[*fs.PathError](err); ok && open.Op == "open" {
			return fmt.Errorf("cannot write to %s: %w", settings.FromHome(dir), open.Err)
		}
		return fmt.Errorf("cannot write %s: %s", settings.FromHome(f.path), state.Reason(err))
	}
	return nil
}

// missingDirs returns the missing folders on the way to dir, the innermost first.
func missingDirs(dir string) (missing []string) {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		missing = append(missing, dir)
	}
	return missing
}

// remove removes a file that was new.
func (f *editedFile) remove() error { return os.Remove(f.real) }

// backup copies the original text to a file beside it, with the same
// permissions.
func (f *editedFile) backup() (string, error) {
	if f.mode == 0 {
		return "", nil
	}
	kept, err := openEdited(f.path + ".before-toolcell")
	if err == nil {
		kept.after, kept.mode, kept.uid, kept.gid = f.before, f.mode, f.uid, f.gid
		err = kept.write()
	}
	if err != nil {
		return "", fmt.Errorf("keeping a backup: %w", err)
	}
	return kept.path, nil
}

// checksum returns the SHA-256 of a text, so that undo can tell whether it
// changed.
func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
