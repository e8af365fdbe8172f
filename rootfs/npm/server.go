package npm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/serverlock"
)

// A Server is what an entry asks for. Its versions are chosen when it is first started, and stay until
// the user accepts an Update or its entry asks for other packages.
type Server struct {
	Name   string // for messages and in commands
	Dir    string // where its lock is: a folder of its own, which is made if it is missing
	Specs  []string
	Tool   Tool
	Before time.Time // later versions are not chosen; zero: none is
}

// lock is the file of the server's lock.
func (s Server) lock() serverlock.File {
	specs := slices.Sorted(slices.Values(s.Specs))
	return serverlock.File{Path: filepath.Join(s.Dir, "package-lock"), Digest: serverlock.DigestOf(specs)}
}

// Ensure returns the layer with the packages of the server. At the first time, and when its entry asks
// for others than those that are locked, it has npm choose versions and locks them; else it uses the
// lock, and asks the registry only for what the store no longer has. The lock of the request does not
// count. Progress may be nil.
func (s Server) Ensure(ctx context.Context, store *Store, r Request, progress func(packages.Progress)) (*Layer, error) {
	var err error
	if r.Lock, err = s.lock().Ensure(ctx, func(ctx context.Context) ([]byte, error) { return s.choose(ctx, r) }); err != nil {
		return nil, s.explain("choosing the packages", err)
	}
	layer, err := store.Ensure(ctx, r, progress)
	if _, refused := errors.AsType[*packages.RequestError](err); refused { // by what is locked
		err = fmt.Errorf("%w; the server is locked to these versions in %s until it is updated: toolcell servers update %s",
			err, s.lock().Path, text.ShellWord(text.OneLine(s.Name, 128)))
	}
	return layer, s.explain("getting the packages", err)
}

// Locked returns the packages that are locked for what the entry asks for, nil if none are yet. The request
// says from where they are and for which platform.
func (s Server) Locked(ctx context.Context, r Request) (*Tree, error) {
	lock, fits, err := s.lock().Read()
	if err != nil || !fits {
		return nil, err
	}
	return ParseLock(ctx, lock, r.Source, r.Platform)
}

// choose has npm choose versions.
func (s Server) choose(ctx context.Context, r Request) ([]byte, error) {
	if r.Offline {
		return nil, packages.ErrOffline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.MaxTime, fmt.Errorf("it took longer than %s ([packages.npm] maxTime)", r.MaxTime))
	defer cancel()
	return Lock(ctx, LockRequest{Source: r.Source, Platform: r.Platform, Tool: s.Tool, Specs: s.Specs, Before: s.Before})
}

// explain says of which server an error is.
func (s Server) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of the server %q: %w", doing, text.OneLine(s.Name, 80), err)
}

// An Update is a lock that is not in use yet.
type Update struct {
	Changes []Change // from the lock in use; none if that is the newest
	Scripts []string // packages with install scripts, which have not run

	file serverlock.File
	was  []byte
	lock []byte
}

// Update has npm choose versions anew and compares them with those in use. Nothing changes before
// Accept.
func (s Server) Update(ctx context.Context, r Request) (*Update, error) {
	u := &Update{file: s.lock()}
	var err error
	if u.was, _, err = u.file.Read(); err != nil {
		return nil, err
	}
	if u.lock, err = s.choose(ctx, r); err != nil {
		return nil, s.explain("choosing the packages", err)
	}
	before := &Tree{}
	if u.was != nil {
		if before, err = ParseLock(ctx, u.was, r.Source, r.Platform); err != nil {
			before = &Tree{} // of another platform or registry: everything is new
		}
	}
	after, err := ParseLock(ctx, u.lock, r.Source, r.Platform)
	if err != nil {
		return nil, s.explain("comparing the packages", err)
	}
	u.Changes, u.Scripts = Diff(before, after), after.InstallScripts()
	return u, nil
}

// Accept makes the update the server's lock, from its next start on.
func (u *Update) Accept(ctx context.Context) error { return u.file.Replace(ctx, u.was, u.lock) }
