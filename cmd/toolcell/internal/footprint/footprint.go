// Package footprint knows which files on this machine are toolcell's: of what kind each is, how much
// of the disk it takes, and how to remove it.
//
// It promises that nothing outside the places that it is given is touched: it follows no link, does
// not cross into what is mounted below a place, and leaves a place of another user alone. In a
// folder that is not toolcell's alone, such as a home folder named as the state folder, it touches
// only what has a name that toolcell gives. It does not know whether a process uses the files.
package footprint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/text"
)

// A Kind is what some of the files are.
type Kind string

// The kinds, in the order in which they are listed.
const (
	Images    Kind = "images"
	Packages  Kind = "packages"
	Runner    Kind = "runner"
	Catalogs  Kind = "catalogs"
	Tools     Kind = "saved tools"
	Files     Kind = "files of runs"
	Record    Kind = "record of runs"
	Sessions  Kind = "sessions"
	Pins      Kind = "pins"
	Homes     Kind = "homes of servers"
	Logins    Kind = "logins"
	Decisions Kind = "trust, values, answers"
	Running   Kind = "run folders"
	OwnFiles  Kind = "your own files"
	Program   Kind = "program"
	Other     Kind = "other" // the places themselves, and what fits no other kind
)

// Kinds are all kinds, in their order.
var Kinds = []Kind{Images, Packages, Runner, Catalogs, Tools, Files, Record, Sessions, Pins, Homes, Logins, Decisions, Running, OwnFiles, Program, Other}

// A Place is a folder in which toolcell keeps files.
type Place struct {
	Dir   string
	Role  Role
	Whole bool // all that is in it is toolcell's: the folder is named for it
	Up    int  // how many of the folders above may have been made for it, and go if they are empty

	Owned Owned // of the homes of servers in it; if nil, these are as other folders
}

// Owned are folders with IDs of this user that are not the user's own ID: only a user namespace has
// those. What is in the folders is hostile. A path is that of one of them in a place.
type Owned interface {
	Measure(ctx context.Context, path string) (bytes, files int64, err error)
	Remove(ctx context.Context, path string) error
}

// A Use is what the files of one kind take.
type Use struct {
	Kind    Kind     `json:"kind"`
	Bytes   int64    `json:"bytes"`  // on the disk, as du counts them; a file with several names counts once
	Shared  int64    `json:"shared"` // of Bytes, those of files that have other names elsewhere: removing them frees nothing
	Count   int      `json:"count"`  // images, wheels, tools, runs and so on; else files
	Files   int      `json:"files"`  // with folders and links
	Folders []string `json:"folders"`
}

// Found is what there is in some places.
type Found struct {
	Uses     []Use    // kinds that have anything
	Names    []string // of the user's own files, relative to their folder; at most maxNames
	Foreign  []string // what lies among toolcell's files and is not one
	Problems []string // places that are left alone, and why

	places []*opened
	items  []item
}

// maxNames bounds Found.Names and Found.Foreign: they are shown to the user.
const maxNames = 100

// Total is what all kinds together take, in bytes.
func (f *Found) Total() (sum int64) {
	for _, u := range f.Uses {
		sum += u.Bytes
	}
	return sum
}

// Shared is what files that have other names elsewhere take, in bytes.
func (f *Found) Shared() (sum int64) {
	for _, u := range f.Uses {
		sum += u.Shared
	}
	return sum
}

// Freed returns how many bytes of a kind are no longer on the disk now. It is never negative, though a
// process may have written more.
func (f *Found) Freed(k Kind, now *Found) int64 {
	was, is := f.Use(k), now.Use(k)
	return max(0, was.Bytes-was.Shared-(is.Bytes-is.Shared))
}

// Use returns what a kind takes; nothing if there is none of it.
func (f *Found) Use(k Kind) Use {
	if i := slices.IndexFunc(f.Uses, func(u Use) bool { return u.Kind == k }); i >= 0 {
		return f.Uses[i]
	}
	return Use{Kind: k}
}

// An opened place stays open, so that what is removed is what was shown.
type opened struct {
	Place
	dir *os.File
	all []string // the folders of all places: one in another is counted on its own
}

// An item is a file or tree of one kind, or a folder that goes if it is empty afterwards.
type item struct {
	kind   Kind
	place  *opened
	path   string // in the place; "." is the place
	folder bool   // only the folder
}

// Look finds and measures what is in places. Places that do not exist have nothing. It ends early
// with ctx. The result has to be closed.
func Look(ctx context.Context, places []Place) (*Found, error) {
	f := &Found{}
	var dirs []string
	for _, p := range places {
		dirs = append(dirs, p.Dir)
	}
	for i, p := range places {
		if slices.Contains(dirs[:i], p.Dir) {
			continue
		}
		dir, err := openPlace(p.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOthers) && p.Role == IDs: // in /tmp anyone may make one
			continue
		case err != nil:
			f.Problems = append(f.Problems, err.Error())
			continue
		}
		o := &opened{p, dir, dirs}
		f.places = append(f.places, o)
		if err := f.sort(o); err != nil {
			f.Problems = append(f.Problems, err.Error())
		}
	}
	if err := f.measure(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the places.
func (f *Found) Close() {
	for _, p := range f.places {
		_ = p.dir.Close() // it was only read
	}
}

var errOthers = errors.New("belongs to another user")

// openPlace opens a folder of this user. Its own name may not be a link; those of the folders above
// may: the user has put them there.
func openPlace(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a link, which is not followed", path)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s %w", path, errOthers)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("%s cannot be looked into: chmod u+rwx %s", path, text.ShellWord(path))
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	if here, err := dir.Stat(); err != nil || !os.SameFile(here, info) {
		return nil, errors.Join(fmt.Errorf("%s was replaced meanwhile", path), err, dir.Close())
	}
	return dir, nil
}

// full is the path of an item for people.
func (i item) full() string { return filepath.Join(i.place.Dir, i.path) }
