// Package homes keeps the folders that MCP servers in sandboxes have as HOME: one for each server,
// below a folder of this user's state.
//
// It promises that the folder of a server belongs to a user ID that no code and, in the same state
// folder, no other server has, where the host has such IDs (host.Host.ServerUIDs), and that other
// users cannot reach it. What is in a folder is hostile: no link in it is followed, no file opened, no
// mount entered, and a folder of any depth can be removed.
//
// Files of other IDs can only be changed with capabilities. Root has them. Any other user gets them in
// a user namespace, for which this package starts this program again: init in namespace.go is the
// child's part. The package does not know whether a server is running. It neither mounts the folders
// nor limits what is written to them; Watch notices.
package homes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/host"
)

// A Store has the folders. It is safe for concurrent use, also by several processes.
type Store struct {
	dir  string
	host host.Host
}

// A Home is the folder of a server.
type Home struct {
	Dir string
	UID int64 // on the host, reserved for this server; -1 if it is this user's own, as in a sandbox with one ID
}

// Open returns the store in dir, which need not exist, with the IDs of h.
func Open(dir string, h host.Host) *Store { return &Store{dir, h} }

// homeName is the folder itself, in one that belongs to this user and has its mode. A server may
// change the mode of its HOME, but not of that.
const homeName = "home"

var notInFolderNames = text.Pattern(`[^A-Za-z0-9._-]+`)

// FolderOf returns the folder of a server, which says to a reader which server it is, and holds the
// digest of the whole name.
func FolderOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	readable := strings.TrimLeft(notInFolderNames().ReplaceAllString(name, "_"), ".-")
	return readable[:min(len(readable), 40)] + "-" + hex.EncodeToString(sum[:8])
}

// isFolder reports whether a name is one of folderOf.
func isFolder(name string) bool {
	name, installed, found := strings.Cut(name, installedMark)
	at := strings.LastIndexByte(name, '-')
	return at >= 0 && isDigest(name[at+1:]) && (!found || isDigest(installed))
}

func isDigest(text string) bool {
	digest, err := hex.DecodeString(text)
	return err == nil && len(digest) == 8
}

// Ensure returns the folder of a server, and makes it if there is none. It gives the folder with all
// that is in it to the server's ID if it belongs to another, as after subordinate IDs have come or
// gone; the server must not be running then. The error names the first
// file that cannot be given away, or says that no ID is left.
func (s *Store) Ensure(ctx context.Context, name string) (Home, error) {
	unlock, err := s.lock(ctx)
	var h Home
	if err == nil {
		defer unlock()
		h, err = s.ensure(ctx, record{Name: name})
	}
	if err != nil {
		return Home{}, fmt.Errorf("making the home folder of %q: %w", name, err)
	}
	return h, nil
}

// ensure is Ensure of the folder that a record is for, under the lock.
func (s *Store) ensure(ctx context.Context, of record) (Home, error) {
	folder := of.folder()
	dir := filepath.Join(s.dir, folder)
	if err := ownFolder(dir); err != nil {
		return Home{}, err
	}
	was, err := s.entry(folder)
	if err != nil {
		return Home{}, err
	}
	uid, err := s.choose(was)
	if err != nil {
		return Home{}, err
	}
	// The ID is noted before files belong to it, so that no other server gets it if this process is
	// killed, and the next one knows to whom files may belong.
	if !was.noted || was.record.UID != uid {
		of.UID, of.GID, of.Before = uid, s.groupFor(uid), was.record.UID
		if err := s.note(folder, of); err != nil {
			return Home{}, err
		}
	}
	home := Home{Dir: filepath.Join(dir, homeName), UID: uid}
	if was.owner < 0 {
		if err := os.Mkdir(home.Dir, 0o700); err != nil {
			return Home{}, err
		}
		if was, err = s.entry(folder); err != nil {
			return Home{}, err
		}
	}
	if was.owner != s.ownerFor(uid) {
		err = s.give(ctx, was, uid)
	}
	return home, err
}

// ownFolder makes a folder that only this user can enter.
func ownFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// lock keeps other processes from changing the store.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	return state.Lock(ctx, filepath.Join(s.dir, "lock"), state.Exclusive)
}

// single reports whether the folders belong to this user.
func (s *Store) single() bool {
	h := s.host
	return h.UIDs.User < 0 || h.GIDs.User < 0 || h.ServerUIDs.Size <= 0 || h.NoProc && h.EUID != 0
}

// ownerFor returns the ID that owns the folder of a server.
func (s *Store) ownerFor(uid int64) int64 {
	if uid < 0 {
		return int64(s.host.EUID)
	}
	return uid
}

// groupFor returns the group of the files of a server.
func (s *Store) groupFor(uid int64) int64 {
	if uid < 0 {
		return int64(os.Getegid())
	}
	return s.host.GIDs.User
}

// choose returns the ID for a server: the one that it has, or the lowest that no other folder has.
func (s *Store) choose(e entry) (uid int64, err error) {
	if s.single() {
		return -1, nil
	}
	taken, err := s.taken(e.folder)
	if err != nil {
		return 0, err
	}
	ids := s.host.ServerUIDs
	has := func(id int64) bool { return ids.Contains(id) && !taken[id] }
	switch {
	case has(e.record.UID):
		return e.record.UID, nil
	case has(e.owner):
		return e.owner, nil
	}
	for id := ids.Start; id < ids.Start+ids.Size; id++ {
		if has(id) {
			return id, nil
		}
	}
	return 0, fmt.Errorf("all %d user IDs for servers are taken: remove folders of servers that you no longer use from %s", ids.Size, s.dir)
}

// taken returns the IDs of all folders but one.
func (s *Store) taken(but string) (map[int64]bool, error) {
	all, err := s.entries()
	if err != nil {
		return nil, err
	}
	taken := map[int64]bool{}
	for _, e := range all {
		if e.folder != but {
			taken[e.record.UID], taken[e.owner] = true, true
		}
	}
	return taken, nil
}

// List returns the names of the servers that have a HOME, in order.
func (s *Store) List() ([]string, error) {
	all, err := s.entries()
	var names []string
	for _, e := range all {
		if e.noted && e.record.Installed == "" {
			names = append(names, e.record.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// Remove removes the folder of a server, with all that is in it, and what was installed for it. It is
// no error if there is none. No such server may be running.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.removeThose(ctx, func(folder string) bool { return serverFolder(folder) == FolderOf(name) })
}

// RemoveAll removes the folders of all servers.
func (s *Store) RemoveAll(ctx context.Context) error {
	return s.removeThose(ctx, func(string) bool { return true })
}

// removeThose removes some folders. One that cannot be removed does not keep it from the others.
func (s *Store) removeThose(ctx context.Context, those func(folder string) bool) error {
	all, err := s.entries()
	all = slices.DeleteFunc(all, func(e entry) bool { return !those(e.folder) })
	if err != nil || len(all) == 0 {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	var errs []error
	for _, e := range all {
		errs = append(errs, s.remove(ctx, e.folder))
	}
	return errors.Join(errs...)
}

func (s *Store) remove(ctx context.Context, folder string) error {
	e, err := s.entry(folder)
	if err != nil {
		return err
	}
	if err := s.removeHome(ctx, e); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, folder)
	for _, file := range []string{recordName, state.Unfinished(recordName)} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) { // another part of toolcell may keep files there
		return &os.PathError{Op: "remove", Path: dir, Err: err}
	}
	return nil
}

// RemoveIn removes what is at the path of a Home, and leaves what is beside it.
func (s *Store) RemoveIn(ctx context.Context, path string) error {
	e, err := s.entryAt(path)
	if err != nil {
		return err
	}
	return s.removeHome(ctx, e)
}
