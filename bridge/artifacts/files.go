package artifacts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
)

// maxKept bounds the files kept of one run, in bytes; it is the size of its
// /workspace.
const maxKept = 128 << 20

// A File is a file that a run has left and that clients can read.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URI  string `json:"uri"`
}

// runFiles are the files of one run while they are collected. The folder is
// created with the first file.
type runFiles struct {
	store *Store

	mu      sync.Mutex
	id      string
	dir     string // that is being filled
	parts   int
	size    int64
	kept    []keptFile
	notes   []string
	private []string // as SetPrivate
}

// A keptFile is on the disk under a temporary name.
type keptFile struct {
	part      string // its name until it is published
	name      string // the name that it is to have
	generated bool   // the code did not choose the name, so names that it chose take precedence
	size      int64
	// named is called with the file's final name and URI, and returns whether
	// the result lists it. If it is nil, the result lists it.
	named func(name, uri string) (listed bool)
}

// ErrNoFolder means that this server keeps no files.
var ErrNoFolder = errors.New("this server has no folder for files of runs")

// create makes a file in the run's folder.
func (f *runFiles) create() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store.dir == "" {
		return nil, ErrNoFolder
	}
	if f.dir == "" {
		id := newRunID()
		dir, err := f.store.createFolder(id)
		if err != nil {
			return nil, err
		}
		f.id, f.dir = id, dir
	}
	f.parts++
	return os.OpenFile(filepath.Join(f.dir, ".part-"+strconv.Itoa(f.parts)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// keep adds a whole file if there is room, and returns its path, which is valid
// until publish.
func (f *runFiles) keep(k keptFile, from io.Reader) (path string, err error) {
	defer func() { err = f.store.explain(err) }()
	file, err := f.create()
	if err != nil {
		return "", err
	}
	room := f.room()
	k.part = filepath.Base(file.Name())
	k.size, err = io.Copy(file, io.LimitReader(from, room+1))
	err = errors.Join(err, file.Close())
	if err == nil && k.size > room {
		err = fmt.Errorf("the files of a run can have %s in all", text.Size(maxKept))
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	f.add(k)
	return file.Name(), nil
}

func (f *runFiles) add(k keptFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, k)
	f.size += k.size
}

func (f *runFiles) addStream(file, name string, size int64, named func(uri string)) {
	f.add(keptFile{part: filepath.Base(file), name: name, generated: true, size: size, named: func(_, uri string) bool {
		named(uri)
		return true
	}})
}

// room returns how many bytes may still be kept.
func (f *runFiles) room() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, maxKept-f.size)
}

// addNote keeps a note about the run's files for the caller.
func (f *runFiles) addNote(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// publish gives every file its name and makes the folder visible to readers.
func (f *runFiles) publish() (left Published) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left.Notes = f.notes
	if f.dir == "" {
		return left
	}
	names, err := f.rename()
	if err == nil {
		err = f.writePrivate()
	}
	if err == nil {
		left.Folder, err = f.store.publish(f.id)
	}
	if err != nil {
		left.Notes = append(left.Notes, fmt.Sprintf("the files of this run could not be kept: %v", f.store.explain(err)))
		return left
	}
	f.dir = ""
	for i, k := range f.kept {
		uri := fileURI(f.id, names[i])
		if k.named == nil || k.named(names[i], uri) {
			left.Files = append(left.Files, File{names[i], typeOf(filepath.Join(left.Folder, names[i])), k.size, uri})
		}
	}
	return left
}

// rename gives the files their final names. Files whose name the code chose come
// first, here and in the result.
func (f *runFiles) rename() (names []string, err error) {
	var chosen, generated []keptFile
	for _, k := range f.kept {
		if k.generated {
			generated = append(generated, k)
		} else {
			chosen = append(chosen, k)
		}
	}
	f.kept = slices.Concat(chosen, generated)
	taken := map[string]int{}
	for _, k := range f.kept {
		name := freeName(k.name, taken)
		names = append(names, name)
		if err := os.Rename(filepath.Join(f.dir, k.part), filepath.Join(f.dir, name)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// discard removes the files, unless they are published.
func (f *runFiles) discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		_ = os.RemoveAll(f.dir) // if it fails, clean removes the folder when it is old
	}
}
