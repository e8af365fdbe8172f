package bridge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// maxKept bounds what is kept of one run, in bytes; its /workspace is as large.
const maxKept = 128 << 20

// A File is one that a run has left, and that can be read after it.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URI  string `json:"uri"`
}

// runFiles takes in what one run leaves: pictures as they come, the streams if
// they are too long for the result, and at the end what is in /workspace/out.
// There is nothing of it on the disk before the first file.
type runFiles struct {
	store *runStore

	mu    sync.Mutex
	id    string
	dir   string // that is being filled
	parts int
	size  int64
	kept  []keptFile
	notes []string
}

// A keptFile is on the disk, under a name that is not its last.
type keptFile struct {
	part string // what it is called until then
	name string // what it shall be called
	ours bool   // the name is, and gives way to one that the code chose
	size int64
	// named is told the last name and whether the result lists the file; nil
	// if it does.
	named func(name, uri string) (listed bool)
}

// errNoFolder says that this server keeps no files.
var errNoFolder = errors.New("this server has no folder for files of runs")

// create makes a file in the run's folder.
func (f *runFiles) create() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store.dir == "" {
		return nil, errNoFolder
	}
	if f.dir == "" {
		id := newRunID()
		dir, err := f.store.begin(id)
		if err != nil {
			return nil, err
		}
		f.id, f.dir = id, dir
	}
	f.parts++
	return os.OpenFile(filepath.Join(f.dir, ".part-"+strconv.Itoa(f.parts)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// keep takes in a whole file, as long as there is room.
func (f *runFiles) keep(k keptFile, from io.Reader) (err error) {
	file, err := f.create()
	if err != nil {
		return err
	}
	room := f.room()
	k.part = filepath.Base(file.Name())
	k.size, err = io.Copy(file, io.LimitReader(from, room+1))
	err = errors.Join(err, file.Close())
	if err == nil && k.size > room {
		err = fmt.Errorf("the files of a run can have %s in all", text.Size(maxKept))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	f.add(k)
	return nil
}

func (f *runFiles) add(k keptFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, k)
	f.size += k.size
}

// createSpill makes a file for a stream that is too long for the result.
func (f *runFiles) createSpill(string) (*os.File, error) {
	file, err := f.create()
	if errors.Is(err, errNoFolder) {
		err = output.ErrNotKept
	}
	return file, err
}

// addSpilled adds the file of a stream. It calls named with the file's URI once
// there is one.
func (f *runFiles) addSpilled(k output.Spilled, named func(uri string)) {
	f.add(keptFile{part: filepath.Base(k.Path), name: k.Name, ours: true, size: k.Size, named: func(_, uri string) bool {
		named(uri)
		return true
	}})
}

// room is how many bytes may still be kept.
func (f *runFiles) room() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, maxKept-f.size)
}

// note says something about the run's files to the caller.
func (f *runFiles) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// finish gives every file its name, shows the folder to readers, and lists in
// the result what there is. Nothing may be added any more.
func (f *runFiles) finish(r *Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { r.Notes = append(r.Notes, f.notes...) }()
	if f.dir == "" {
		return
	}
	names, err := f.rename()
	if err == nil {
		r.folder, err = f.store.finish(f.id)
	}
	if err != nil {
		f.notes = append(f.notes, fmt.Sprintf("the files of this run could not be kept: %v", err))
		return
	}
	f.dir = ""
	for i, k := range f.kept {
		uri := fileURI(f.id, names[i])
		if k.named == nil || k.named(names[i], uri) {
			r.Files = append(r.Files, File{names[i], typeOf(filepath.Join(r.folder, names[i])), k.size, uri})
		}
	}
}

// rename gives the files their last names. Those that the code chose come
// first, and what is listed is in that order.
func (f *runFiles) rename() (names []string, err error) {
	var chosen, ours []keptFile
	for _, k := range f.kept {
		if k.ours {
			ours = append(ours, k)
		} else {
			chosen = append(chosen, k)
		}
	}
	f.kept = slices.Concat(chosen, ours)
	taken := map[string]bool{}
	for _, k := range f.kept {
		name := freeName(k.name, taken)
		taken[name] = true
		names = append(names, name)
		if err := os.Rename(filepath.Join(f.dir, k.part), filepath.Join(f.dir, name)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// close removes what a run has left that came to no result.
func (f *runFiles) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		_ = os.RemoveAll(f.dir) // else it goes when it is old
	}
}
