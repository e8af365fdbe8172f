package homes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// maxTime bounds the work on one folder.
const maxTime = 2 * time.Minute

// The kinds of work.
const (
	opGive    = "give"
	opMeasure = "measure"
	opRemove  = "remove"
)

// A request is work on a folder. IDs are those of the process that does it.
type request struct {
	Op       string
	Folder   string // that the home is in, in the folder of the store
	Owners   []int  // give: whose files are given
	UID, GID int    // to whom
	MaxBytes int64  // measure: where to stop, 0 if nowhere
}

// do is the work, for which this process has the capabilities. dir is the folder of the store.
func (r request) do(ctx context.Context, dir *os.File) (u Use, err error) {
	defer contain.Error("working on a home folder", &err)
	switch r.Op {
	case opGive:
		return u, give(ctx, dir, r)
	case opMeasure:
		return measure(ctx, dir, r)
	case opRemove:
		return u, remove(ctx, dir, r)
	}
	return u, fmt.Errorf("unknown work %q", r.Op)
}

// give gives the folder with all that is in it to the server's ID.
func (s *Store) give(ctx context.Context, e entry, uid int64) error {
	w := s.workOn(e, opGive)
	w.to, w.group = s.ownerFor(uid), s.groupFor(uid)
	_, err := w.run(ctx)
	return err
}

func (s *Store) removeHome(ctx context.Context, e entry) error {
	if e.owner < 0 {
		return nil
	}
	_, err := s.workOn(e, opRemove).run(ctx)
	return err
}

func (s *Store) measure(ctx context.Context, e entry, maxBytes int64) (Use, error) {
	if e.owner < 0 {
		return Use{}, nil
	}
	w := s.workOn(e, opMeasure)
	w.maxBytes = maxBytes
	return w.run(ctx)
}

// A work is on the folder of a server. IDs are those of the host.
type work struct {
	s         *Store
	e         entry
	op        string
	to, group int64   // give: to whom, else -1
	maybe     []int64 // earlier owners, who may have files in it since a change was interrupted
	maxBytes  int64
}

func (s *Store) workOn(e entry, op string) work {
	w := work{s: s, e: e, op: op, to: -1, group: -1}
	if e.owner != s.ownerFor(e.record.UID) {
		w.maybe = []int64{e.record.UID, e.record.Before}
	}
	return w
}

// run does the work, here as root, else in a user namespace.
func (w work) run(ctx context.Context) (Use, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("it takes longer than %s", text.Duration(maxTime)))
	defer cancel()
	dir, err := os.Open(w.s.dir)
	if err != nil {
		return Use{}, err
	}
	defer dir.Close()
	if os.Geteuid() == 0 {
		return w.here(ctx, dir)
	}
	u, err := w.inside(ctx, dir)
	if errors.Is(err, errNotMapped) && len(w.maybe) > 0 {
		w.maybe = nil // most likely none of the files belong to them
		u, err = w.inside(ctx, dir)
	}
	switch uids := w.uids(); {
	case errors.Is(err, errNoNamespace) && len(uids) == 1: // all files are this user's own
		return w.here(ctx, dir)
	case errors.Is(err, errNotMapped):
		path := filepath.Join(w.s.dir, w.e.folder, homeName)
		return u, fmt.Errorf("%s needs the user IDs %s: %w; see toolcell doctor, or remove the folder: sudo rm -r %s",
			path, strings.Trim(fmt.Sprint(uids[1:]), "[]"), err, text.ShellWord(path))
	}
	return u, err
}

// uids returns the IDs that files belong to or will, those of this user first.
func (w work) uids() []int64 {
	return distinct(append([]int64{int64(os.Geteuid()), w.e.owner, w.to}, w.maybe...))
}

func (w work) gids() []int64 {
	all := []int64{int64(os.Getegid()), w.e.group, w.group}
	if len(w.maybe) > 0 {
		all = append(all, w.e.record.GID)
	}
	return distinct(all)
}

// distinct leaves out what is no ID, and what is there before.
func distinct(ids []int64) (out []int64) {
	for _, id := range ids {
		if id >= 0 && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// here does the work in this process.
func (w work) here(ctx context.Context, dir *os.File) (Use, error) {
	r := request{Op: w.op, Folder: w.e.folder, UID: int(w.to), GID: int(w.group), MaxBytes: w.maxBytes}
	for _, id := range w.uids() {
		r.Owners = append(r.Owners, int(id))
	}
	return r.do(ctx, dir)
}

// inside does it in a user namespace, in which IDs are their places in the lists.
func (w work) inside(ctx context.Context, dir *os.File) (Use, error) {
	uids, gids := w.uids(), w.gids()
	r := request{Op: w.op, Folder: w.e.folder, UID: slices.Index(uids, w.to), GID: slices.Index(gids, w.group), MaxBytes: w.maxBytes}
	for i := range uids {
		r.Owners = append(r.Owners, i)
	}
	return inNamespace(ctx, dir, r, uids, gids)
}
