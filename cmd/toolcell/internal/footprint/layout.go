package footprint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
)

// A Role is what a place is for. It decides which names in it are toolcell's.
type Role string

// The roles.
const (
	Cache  Role = "cache"
	State  Role = "state"
	Run    Role = "run"    // of running processes
	IDs    Role = "ids"    // which IDs sandboxes have: a folder that may be a Run place of other settings too
	Config Role = "config" // what the user writes
	Data   Role = "data"   // the program
)

// An entry is a name in a place, and what lies under it. Patterns are those of filepath.Match; one that
// ends in a slash is of folders, another of files.
type entry struct {
	kind  Kind
	name  string   // a pattern
	inner []string // patterns of what in the folder is toolcell's; all of it if there are none
	count string   // pattern of what is counted of the kind, below the entry; "." is the entry, "" all files
}

// none is a pattern of entry.count that matches no file.
const none = "[^/]/"

// hex is a pattern of n hexadecimal digits.
func hex(n int) string { return strings.Repeat("[0-9a-f]", n) }

// written returns a pattern with those of its lock and of what is unfinished (internal/state).
func written(pattern string) []string {
	return []string{pattern, pattern + ".lock", pattern + ".new", ".new-" + pattern + "-*"}
}

// files are entries of single files.
func files(kind Kind, names ...string) (all []entry) {
	for _, name := range names {
		for _, pattern := range written(name) {
			all = append(all, entry{kind, pattern, nil, ""})
		}
	}
	return all
}

// entries returns what is in a place of this role.
func (r Role) entries() []entry {
	ids := []entry{
		{Running, "uids", nil, none},
		{Running, "proc-[0-9]*/", nil, none},
		{Running, ".proc-*/", nil, none},
		{Running, "root-*/", nil, none},
		{Running, ".root-*/", nil, none},
		{Running, "root/", nil, none},
	}
	runs := strings.Repeat("[0-9a-z]", 10) + "*" // the IDs of runs
	day := "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
	switch r {
	case Cache:
		return []entry{
			{Images, "images/", []string{"rootfs/", "layers/", "refs/", "locks/"}, "rootfs/sha256-*"},
			{Packages, "packages/", []string{"wheels/", "sets/", "requests/", "pythons/", "uv/", "locks/"}, "wheels/sha256-*"},
			{Packages, "npm/", []string{"layers/", "locks/"}, "layers/sha256-*"},
			{Runner, "runner/", []string{"runner-*/", ".new-*"}, "runner-*"},
			{Catalogs, "servers/", written(hex(64) + ".tools"), "*.tools"},
		}
	case State:
		return append([]entry{
			{Tools, "tools/", []string{"global/", "*-" + hex(16) + "/"}, "*/*.py"},
			{Files, "runs/", []string{runs + "/", "." + runs + "/", ".gone-" + hex(10) + "/", ".answer-*"}, runs},
			{Record, "records/", []string{day + "/"}, day},
			{Sessions, "sessions/", []string{"[0-9]*.json"}, "*.json"},
			{Pins, "pins/", append(written(hex(64)+".json"), "lock"), "*.json"},
			{Pins, "versions/", []string{"*-" + hex(16) + "/"}, none},
			{Homes, "servers/", []string{"*-" + hex(16) + "/", "*-" + hex(16) + "+" + hex(16) + "/", "lock"}, "*/home"},
			{Logins, "logins/", written(hex(32) + ".json"), "*.json"},
			{Decisions, "rights/", written(hex(64) + ".json"), "*.json"},
		}, append(files(Decisions, "trust.json", "values.json", "answers.jsonl", "answers.1.jsonl"), files(Other, "installs.json", "history", "notes-shown")...)...)
	case Run:
		return append([]entry{
			{Running, "instance-[0-9]*/", nil, "."}, {Running, "lock", nil, none}, {Running, "approvals/", []string{"*.sock", "*.new"}, none},
		}, ids[0])
	case IDs:
		return ids
	case Config:
		return append(files(OwnFiles, "policy.toml", "config.toml"), entry{OwnFiles, "servers/", []string{"*.json", "*.toml", "*.yaml", ".new-*"}, ""})
	}
	return []entry{{Program, "bin/", written("toolcell"), ""}}
}

// unknown is the kind of what has no name of the role, in a place that is toolcell's alone.
func (r Role) unknown() Kind {
	switch r {
	case Config:
		return OwnFiles
	case Data:
		return Program
	}
	return Other
}

// of returns the entry that a name in a place belongs to.
func (r Role) of(name string) (entry, bool) {
	for _, e := range r.entries() {
		if ok, _ := filepath.Match(strings.TrimSuffix(e.name, "/"), name); ok {
			return e, true
		}
	}
	return entry{}, false
}

// A nature is what a file is, as far as patterns are about it.
type nature int

const (
	aFile nature = iota
	aFolder
	aLink // may stand for either: only the link goes
)

// natureOf returns what a name in a folder is.
func natureOf(dir *os.File, name string) nature {
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return aFile // it has gone
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return aFolder
	case unix.S_IFLNK:
		return aLink
	}
	return aFile
}

// fits reports whether a file matches one of some patterns.
func fits(name string, n nature, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		bare := strings.TrimSuffix(p, "/")
		ok, _ := filepath.Match(bare, name)
		return ok && (n == aLink || (n == aFolder) == (bare != p))
	})
}

// sort puts what is in a place into items: first what goes, then the folders that go if they are
// empty.
func (f *Found) sort(p *opened) error {
	names, err := namesIn(p.dir)
	if err != nil {
		return err
	}
	var folders []item
	for _, name := range names {
		if slices.Contains(p.all, filepath.Join(p.Dir, name)) {
			continue // a place of its own
		}
		e, known := p.Role.of(name)
		known = known && (p.Whole || fits(name, natureOf(p.dir, name), e.name))
		switch {
		case !known && p.Whole:
			f.items = append(f.items, item{kind: p.Role.unknown(), place: p, path: name})
		case !known:
			f.foreign(p, name)
		case p.Whole || e.inner == nil:
			f.items = append(f.items, item{kind: e.kind, place: p, path: name})
		default:
			folder, err := f.sortInner(p, name, e)
			if err != nil {
				return err
			}
			folders = append(folders, folder)
		}
	}
	f.items = append(append(f.items, folders...), item{kind: Other, place: p, path: ".", folder: true})
	return nil
}

// sortInner sorts what is in a folder of a place that is not toolcell's alone.
func (f *Found) sortInner(p *opened, name string, e entry) (folder item, err error) {
	dir, err := state.OpenBelow(int(p.dir.Fd()), name)
	if err != nil { // a link or a file, which goes as it is
		return item{kind: e.kind, place: p, path: name}, nil
	}
	defer dir.Close()
	inside, err := namesIn(dir)
	if err != nil {
		return folder, err
	}
	for _, in := range inside {
		path := filepath.Join(name, in)
		if fits(in, natureOf(dir, in), e.inner...) {
			f.items = append(f.items, item{kind: e.kind, place: p, path: path})
		} else {
			f.foreign(p, path)
		}
	}
	return item{kind: e.kind, place: p, path: name, folder: true}, nil
}

func (f *Found) foreign(p *opened, path string) {
	if p.Role != IDs && len(f.Foreign) < maxNames {
		f.Foreign = append(f.Foreign, filepath.Join(p.Dir, path))
	}
}

// counted returns the pattern of what is counted of a kind, relative to the place; "" if it is files.
func (i item) counted() string {
	name, _, _ := strings.Cut(i.path, "/")
	e, _ := i.place.Role.of(name)
	switch e.count {
	case "":
		return ""
	case ".":
		return name
	}
	return name + "/" + e.count
}
