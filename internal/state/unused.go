package state

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	touchedAfter = 24 * time.Hour // use is noted once a day
	brokenAfter  = time.Hour      // a file that is unfinished for longer is left over
)

// Touch notes that a file is used. A file that is another user's is as good without.
func Touch(path string) {
	now := time.Now()
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > touchedAfter {
		_ = os.Chtimes(path, now, now)
	}
}

// Folder is one of files that are named by a key, which it bounds.
type Folder struct {
	Dir    string
	Suffix string        // of the files' names, behind the key
	Unused time.Duration // files that were not used for longer may go
	Max    int           // files that are not among those to keep
}

// Prune removes the files that were not used for long, the longest first if there are too
// many, except those of the keys to keep, and what killed processes left unfinished. It
// returns the names of what it removed. What cannot be removed is tried again next time.
func (f Folder) Prune(keep map[string]bool) (removed []string) {
	dir, err := os.Open(f.Dir)
	if err != nil {
		return nil // it is not there yet
	}
	defer dir.Close()
	type file struct {
		name string
		used time.Time
	}
	remove := func(name string) {
		if os.Remove(filepath.Join(f.Dir, name)) == nil {
			removed = append(removed, name)
		}
	}
	var others []file
	entries, _ := dir.ReadDir(10 * f.Max) // others may put files there
	for _, e := range entries {
		key, ok := strings.CutSuffix(strings.TrimSuffix(e.Name(), newSuffix), f.Suffix)
		info, err := e.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case isTemp(e.Name()) && time.Since(info.ModTime()) > brokenAfter:
			remove(e.Name())
		case ok && !keep[key]:
			others = append(others, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(others, func(a, b file) int { return b.used.Compare(a.used) })
	for i, o := range others {
		if i >= f.Max || time.Since(o.used) > f.Unused {
			remove(o.name)
		}
	}
	return removed
}
