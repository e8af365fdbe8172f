package homes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// installedMark is between the folder of a server and the digest of what is installed. No FolderOf
// has it, so no server has such a folder as its HOME, whatever its name is.
const installedMark = "+"

// installedFolder returns the folder in which something with a digest is installed for a server.
func installedFolder(server, digest string) string {
	return FolderOf(server) + installedMark + digest[:min(len(digest), 16)]
}

// serverFolder returns the folder of the server that a folder is for.
func serverFolder(folder string) string {
	server, _, _ := strings.Cut(folder, installedMark)
	return server
}

// An Installed is a complete folder in which something was installed for a server. It belongs to an ID
// that neither that server nor any other has, and no process removes it before Release.
type Installed struct {
	Dir  string
	held *os.File
}

// Release lets other processes remove the folder. It may be called more than once, and of nil.
func (i *Installed) Release() {
	if i != nil {
		i.held.Close()
	}
}

// An Installer fills a new folder, as its HOME. Its ctx ends when the folder takes too much.
type Installer func(ctx context.Context, home Home) error

// A Limit is what a folder may take, and how often it is looked at while it is filled.
type Limit struct {
	Bytes int64
	Every time.Duration
}

// EnsureInstalled returns the folder with what is installed for a server, which what names with all
// that it depends on. If it is not there, install fills it; when that fails or takes more than the
// limit, or this process is killed meanwhile, nothing is there. Concurrent calls, also of other
// processes, wait for the one that installs. Once it is complete, what else was installed for the server
// and is in no use is removed.
//
// What is in the folder is hostile, as in that of a server.
func (s *Store) EnsureInstalled(ctx context.Context, server, what string, limit Limit, install Installer) (*Installed, error) {
	sum := sha256.Sum256([]byte(what))
	of := record{Name: server, Installed: hex.EncodeToString(sum[:])}
	for range maxInstalls {
		in, err := s.installed(ctx, of)
		if in != nil || err != nil {
			return in, err
		}
		if err := s.install(ctx, of, limit, install); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("what is installed for %q vanishes: something else is changing %s", server, s.dir)
}

// maxInstalls bounds how often EnsureInstalled begins again, since another process removes what it has
// installed before it is in use.
const maxInstalls = 5

// installed returns the complete folder of a record, nil if there is none.
func (s *Store) installed(ctx context.Context, of record) (*Installed, error) {
	held, err := s.hold(ctx, of.folder(), state.Shared)
	if err != nil {
		return nil, err
	}
	if e, err := s.entry(of.folder()); err != nil || !s.isComplete(e) {
		held.Close()
		return nil, err
	}
	return &Installed{filepath.Join(s.dir, of.folder(), homeName), held}, nil
}

// isComplete reports whether an entry is a complete folder of the ID that it was made for. After a
// change of this user's IDs it is installed again.
func (s *Store) isComplete(e entry) bool {
	if !e.noted || !e.record.Complete || e.owner != s.ownerFor(e.record.UID) {
		return false
	}
	return s.single() && e.record.UID < 0 || s.host.ServerUIDs.Contains(e.record.UID)
}

// install makes a folder and has it filled, unless another process has done so meanwhile.
func (s *Store) install(ctx context.Context, of record, limit Limit, install Installer) (err error) {
	folder := of.folder()
	held, err := s.hold(ctx, folder, state.Exclusive)
	if err != nil {
		return err
	}
	defer held.Close()
	if e, err := s.entry(folder); err != nil || s.isComplete(e) {
		return err
	}
	home, err := s.startOver(ctx, of)
	if err != nil {
		return fmt.Errorf("making a folder to install in for %q: %w", of.Name, err)
	}
	if err := s.fill(ctx, of, home, limit, install); err != nil {
		return errors.Join(err, s.underLock(context.WithoutCancel(ctx), func(ctx context.Context) error { return s.remove(ctx, folder) }))
	}
	return s.underLock(ctx, func(ctx context.Context) error {
		e, err := s.entry(folder)
		if err != nil {
			return err
		}
		e.record.Complete = true
		if err := s.note(folder, e.record); err != nil {
			return err
		}
		s.removeOthers(ctx, folder)
		return nil
	})
}

// fill has a folder filled, and ends that when it takes more than the limit. What has grown too fast to
// be seen is refused at the end.
func (s *Store) fill(ctx context.Context, of record, home Home, limit Limit, install Installer) error {
	life, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end(nil)
	watch.Go(func() {
		defer contain.Recover("watching the size of an installation", end)
		use, err := s.watch(life, of, limit.Bytes, limit.Every)
		if life.Err() == nil {
			end(limit.check(use, err))
		}
	})
	if err := install(life, home); err != nil {
		return err
	}
	return limit.check(s.size(ctx, of, limit.Bytes))
}

// check returns an error if a folder takes more than the limit, or could not be measured.
func (l Limit) check(use Use, err error) error {
	if err == nil && (use.More || use.Bytes > l.Bytes) {
		return fmt.Errorf("more than %s was written (%s)", text.Size(l.Bytes), text.Size(use.Bytes))
	}
	return err
}

// startOver removes what an installation left that did not end, and makes the folder anew.
func (s *Store) startOver(ctx context.Context, of record) (home Home, err error) {
	err = s.underLock(ctx, func(ctx context.Context) error {
		e, err := s.entry(of.folder())
		if err != nil {
			return err
		}
		if e.record.Complete { // by an ID that this user no longer has, or the folder is gone
			e.record.Complete = false
			if err := s.note(of.folder(), e.record); err != nil {
				return err
			}
		}
		if err := s.removeHome(ctx, e); err != nil {
			return err
		}
		home, err = s.ensure(ctx, of)
		return err
	})
	return home, err
}

// removeOthers removes what else was installed for the server of a folder, as far as no process uses
// it. What cannot be removed is left: the next installation, and purge, try it again.
func (s *Store) removeOthers(ctx context.Context, but string) {
	all, _ := s.entries()
	for _, e := range all {
		if e.folder == but || e.folder == serverFolder(but) || serverFolder(e.folder) != serverFolder(but) {
			continue
		}
		if held, err := state.TryLock(filepath.Join(s.dir, e.folder), unix.O_DIRECTORY, state.Exclusive); err == nil {
			_ = s.remove(ctx, e.folder)
			held.Close()
		}
	}
}

func (s *Store) underLock(ctx context.Context, do func(context.Context) error) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return do(ctx)
}

// holdPause is between two attempts to hold a folder.
const holdPause = 50 * time.Millisecond

// hold makes a folder and locks it, and waits for that until ctx ends. Folders are only removed under
// the store's lock, and so is this one locked: then it is the one of this name.
func (s *Store) hold(ctx context.Context, folder string, kind state.Kind) (held *os.File, err error) {
	for {
		err = s.underLock(ctx, func(context.Context) (err error) {
			dir := filepath.Join(s.dir, folder)
			if err := ownFolder(dir); err != nil {
				return err
			}
			held, err = state.TryLock(dir, unix.O_DIRECTORY, kind)
			return err
		})
		if !errors.Is(err, state.ErrLocked) {
			return held, err
		}
		select {
		case <-time.After(holdPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another process that installs the same: %w", context.Cause(ctx))
		}
	}
}
