package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/toolcell/toolcell/internal/text"
)

// maxKept bounds the files kept of one run, in bytes; it is the size of its
// /workspace. Streams have bounds of their own.
const maxKept = 128 << 20

// A File is a file that a run has left and that clients can read.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URI  string `json:"uri"`
	// SHA256 is of the content, in hexadecimal; "" of what was printed.
	SHA256 string `json:"-"`
}

// A keptFile is on the disk under a temporary name.
type keptFile struct {
	part      string // its name until it is published
	name      string // the name that it is to have
	generated bool   // the code did not choose the name, so names that it chose take precedence
	size      int64
	sha256    string
	// named is called with the file's final name and URI, and returns whether
	// the result lists it. If it is nil, the result lists it.
	named func(name, uri string) (listed bool)
}

// ErrNoFolder means that this server keeps no files.
var ErrNoFolder = errors.New("this server has no folder for files of runs")

// Create makes a file for a stream that is too long for the result. Its error is
// ErrNoFolder if no files are kept here.
func (c *Collector) Create() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store.o.Dir == "" {
		return nil, ErrNoFolder
	}
	if c.dir == "" {
		dir, err := c.store.createFolder(c.id)
		if err != nil {
			return nil, err
		}
		c.dir = dir
	}
	c.parts++
	return os.OpenFile(filepath.Join(c.dir, ".part-"+strconv.Itoa(c.parts)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Why there is no room for a file.
var (
	errNoRoom = fmt.Errorf("the files of a run can have %s in all", text.Size(maxKept))
	errGrown  = fmt.Errorf("it has grown while it was read: %w", errNoRoom)
)

// keep adds a whole file if there is room, and returns its path, which is valid
// until publish.
func (c *Collector) keep(k keptFile, from io.Reader) (path string, err error) {
	defer func() { err = c.store.explain(err) }()
	file, err := c.Create()
	if err != nil {
		return "", err
	}
	room := c.room()
	k.part = filepath.Base(file.Name())
	sum := sha256.New()
	k.size, err = io.Copy(io.MultiWriter(file, sum), io.LimitReader(from, room+1))
	k.sha256 = hex.EncodeToString(sum.Sum(nil))
	err = errors.Join(err, file.Close())
	if err == nil && k.size > room {
		err = errNoRoom
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	c.add(k)
	return file.Name(), nil
}

func (c *Collector) add(k keptFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k)
	c.size += k.size
}

// AddStream adds a stream that was written to a file from Create, under the
// given name. It calls named with the file's URI once there is one.
func (c *Collector) AddStream(file, name string, size int64, named func(uri string)) {
	c.add(keptFile{part: filepath.Base(file), name: name, generated: true, size: size, named: func(_, uri string) bool {
		named(uri)
		return true
	}})
}

// room returns how many bytes may still be kept.
func (c *Collector) room() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, maxKept-c.size)
}

// addNote keeps a note about the run's files for the caller.
func (c *Collector) addNote(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// publish gives every file its name and makes the folder visible to readers.
func (c *Collector) publish() (left Published) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left.Notes = c.notes
	if len(c.kept) == 0 {
		return left // Discard removes a folder with parts of files
	}
	names, err := c.rename()
	if err == nil {
		err = c.writePrivate()
	}
	if err == nil {
		left.Folder, err = c.store.publish(c.id)
	}
	if err != nil {
		left.Notes = append(left.Notes, fmt.Sprintf("the files of this run could not be kept: %v", c.store.explain(err)))
		return left
	}
	c.dir = ""
	for i, k := range c.kept {
		uri := fileURI(c.id, names[i])
		if k.named == nil || k.named(names[i], uri) {
			left.Files = append(left.Files, File{names[i], typeOf(filepath.Join(left.Folder, names[i])), k.size, uri, k.sha256})
		}
	}
	return left
}

// rename gives the files their final names. Files whose name the code chose come
// first, here and in the result.
func (c *Collector) rename() (names []string, err error) {
	var chosen, generated []keptFile
	for _, k := range c.kept {
		if k.generated {
			generated = append(generated, k)
		} else {
			chosen = append(chosen, k)
		}
	}
	c.kept = slices.Concat(chosen, generated)
	taken := map[string]int{}
	for _, k := range c.kept {
		name := freeName(k.name, taken)
		names = append(names, name)
		if err := os.Rename(filepath.Join(c.dir, k.part), filepath.Join(c.dir, name)); err != nil {
			return nil, err
		}
	}
	return names, nil
}
