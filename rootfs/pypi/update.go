package pypi

import (
	"cmp"
	"context"
	"slices"

	"github.com/toolcell/toolcell/rootfs/packages"
)

// A Change is a package in which two locks differ.
type Change struct {
	Name string
	Old  string // its version before, or "" if it was added
	New  string // its version now, or "" if it was removed; like Old if only its file differs
}

// An Update is a lock that is not in use yet.
type Update struct {
	Changes []Change // from the lock in use, by name; none if that is the newest

	server Server
	was    []byte // the lock that it was compared with; nil is none
	lock   []byte
}

// Update chooses versions anew and compares them with those in use. Nothing changes before
// Accept. The request is as for Ensure.
func (s Server) Update(ctx context.Context, store *packages.Store, r packages.Request) (*Update, error) {
	r, err := s.request(ctx, store, r)
	if err != nil {
		return nil, err
	}
	if r.Offline {
		return nil, s.explain("choosing the packages", packages.ErrOffline)
	}
	was, _, err := s.lock().Read()
	if err != nil {
		return nil, err
	}
	lock, err := resolve(ctx, store, r)
	if err != nil {
		return nil, s.explain("choosing the packages", err)
	}
	changes, err := diff(ctx, was, lock)
	if err != nil {
		return nil, s.explain("comparing the packages", err)
	}
	return &Update{changes, s, was, lock}, nil
}

// Accept makes the update the server's lock, from its next start on.
func (u *Update) Accept(ctx context.Context) error {
	return u.server.lock().Replace(ctx, u.was, u.lock)
}

// diff returns in what two locks differ, by name. The first may be nil.
func diff(ctx context.Context, before, after []byte) (changes []Change, err error) {
	was, err := lockedPackages(ctx, before)
	if err != nil {
		return nil, err
	}
	is, err := lockedPackages(ctx, after)
	if err != nil {
		return nil, err
	}
	for name, p := range is {
		if old, had := was[name]; !had || old.Version != p.Version || old.SHA256 != p.SHA256 {
			changes = append(changes, Change{name, old.Version, p.Version})
		}
	}
	for name, p := range was {
		if _, has := is[name]; !has {
			changes = append(changes, Change{name, p.Version, ""})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return changes, nil
}

// Locked returns how many packages are locked for what the entry asks for, 0 if none are yet.
func (s Server) Locked(ctx context.Context) (int, error) {
	lock, fits, err := s.lock().Read()
	if err != nil || !fits {
		return 0, err
	}
	all, err := lockedPackages(ctx, lock)
	return len(all), err
}

// lockedPackages returns the packages of a lock by their names.
func lockedPackages(ctx context.Context, lock []byte) (map[string]packages.Package, error) {
	all := map[string]packages.Package{}
	if lock == nil {
		return all, nil
	}
	parsed, err := packages.ParseLock(ctx, lock)
	if err != nil {
		return nil, err
	}
	for _, p := range parsed.Packages() {
		all[p.Name] = p
	}
	return all, nil
}
