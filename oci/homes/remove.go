package homes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// remove removes a home, with all that is in it, however deep.
func remove(ctx context.Context, dir *os.File, r request) error {
	home, err := openHome(dir, r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, unix.EXDEV) {
		return errMounted
	}
	if err != nil {
		return err
	}
	defer home.Close()
	c := clearing{ctx, home}
	if err := c.folder(home, 1); err != nil {
		return err
	}
	return os.NewSyscallError("rmdir", unix.Unlinkat(int(dir.Fd()), filepath.Join(r.Folder, homeName), unix.AT_REMOVEDIR))
}

var errMounted = errors.New("another file system or folder is mounted there: unmount it first")

// A clearing removes what is in a folder, top.
type clearing struct {
	ctx context.Context
	top *os.File
}

// folder removes what is in a folder. It reads the beginning of it again and again, until there is
// nothing: folders from too far below come to the top meanwhile.
func (c clearing) folder(dir *os.File, depth int) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(perRead)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := c.name(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

func (c clearing) name(dir *os.File, name string, depth int) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	at := int(dir.Fd())
	err := unix.Unlinkat(at, name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = c.subfolder(at, name, depth)
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if _, errno := errors.AsType[unix.Errno](err); errno {
		return fmt.Errorf("removing %q in it: %w", text.Bound(name, 100), err)
	}
	return err
}

func (c clearing) subfolder(at int, name string, depth int) error {
	if depth == maxDepth {
		return unix.Renameat(at, name, int(c.top.Fd()), ".toolcell-"+rand.Text())
	}
	sub, err := state.OpenBelow(at, name)
	if errors.Is(err, unix.EXDEV) {
		return errMounted
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := c.folder(sub, depth+1); err != nil {
		return err
	}
	return unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
}
