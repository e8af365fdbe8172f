package cachedir

import (
	"context"
	"encoding/json"
	json2 "encoding/json/v2"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// TempPrefix begins the names of unfinished folders. Their final name follows, which is
// also the name of the builder's lock.
const TempPrefix = ".tmp-"

// Build fills an empty folder and then renames it to name in parent. The caller holds the
// lock of that name.
func Build(parent, name string, fill func(dir string) error) (err error) {
	removeUnfinished(parent, name)
	temp, err := os.MkdirTemp(parent, TempPrefix+name+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rootdir.RemoveAll(temp))
		}
	}()
	defer contain.Error("making a folder of the cache", &err)
	if err := fill(temp); err != nil {
		return err
	}
	return publish(temp, filepath.Join(parent, name))
}

// publish renames a finished folder. Something that has the name already could not be
// loaded, and is removed.
func publish(temp, final string) error {
	err := os.Rename(temp, final)
	if err == nil {
		return syncDir(filepath.Dir(final))
	}
	if _, statErr := os.Lstat(final); statErr != nil {
		return err
	}
	if err := os.Rename(final, temp+"-old"); err != nil {
		return err
	}
	if err := os.Rename(temp, final); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(final)), rootdir.RemoveAll(temp+"-old"))
}

// Remove removes a folder of a cache, first the record that marks it as complete.
func Remove(dir, record string) error {
	if err := os.Remove(filepath.Join(dir, record)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return rootdir.RemoveAll(dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// An unfinished folder of Build.
type unfinished struct {
	dir  string
	name string // its final one
}

func findUnfinished(parent string) (found []unfinished) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), TempPrefix)
		if !ok {
			continue
		}
		// sha256-<hex>-<random>
		if parts := strings.SplitN(rest, "-", 3); len(parts) == 3 {
			found = append(found, unfinished{filepath.Join(parent, e.Name()), parts[0] + "-" + parts[1]})
		}
	}
	return found
}

// removeUnfinished removes the unfinished folders of one name. The caller holds its lock,
// so the processes that made them have ended.
func removeUnfinished(parent, name string) {
	for _, u := range findUnfinished(parent) {
		if u.name == name {
			_ = rootdir.RemoveAll(u.dir)
		}
	}
}

// Sweep removes the unfinished folders that no process is building: those whose lock, named
// by a prefix and their final name, is free. What cannot be removed does no harm and is
// tried again next time.
func (c *Cache) Sweep(folder, lockPrefix string) {
	for _, u := range findUnfinished(filepath.Join(c.Dir, folder)) {
		unlock, err := c.Try(lockPrefix+u.name, state.Exclusive)
		if err != nil {
			continue
		}
		_ = rootdir.RemoveAll(u.dir)
		unlock()
	}
}

// maxJSON bounds small files of a cache, which other programs of the user could have
// damaged, and maxList those that list the files of an image.
const (
	maxJSON = 8 << 20
	maxList = 32 << 20
)

// ReadList reads a JSON file that lists many files. It ends with ctx.
func ReadList(ctx context.Context, file string, v any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return json2.UnmarshalRead(&ContextReader{ctx, io.LimitReader(f, maxList)}, v)
}

// A ContextReader reads until its context ends.
type ContextReader struct {
	Context context.Context
	Inner   io.Reader
}

func (c *ContextReader) Read(p []byte) (int, error) {
	if c.Context.Err() != nil {
		return 0, context.Cause(c.Context)
	}
	return c.Inner.Read(p)
}

// ReadJSON reads a small JSON file.
func ReadJSON(file string, v any) error {
	content, _, err := readSmall(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

func readSmall(file string) (content []byte, stamp state.Stamp, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, stamp, err
	}
	defer f.Close()
	if stamp, err = state.StampOfFile(f); err != nil {
		return nil, stamp, err
	}
	content, err = io.ReadAll(io.LimitReader(f, maxJSON))
	return content, stamp, err
}

// WriteJSON replaces a JSON file as WriteFile does.
func WriteJSON(file string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFile(file, content)
}

// WriteFile atomically replaces a file, readable by every user. The caller holds a lock that
// covers the file.
func WriteFile(file string, content []byte) error {
	return state.Replace(file, content, state.Options{Mode: 0o644, Exact: true, Locked: true})
}

// retryAfter is how long a failed attempt is not repeated.
const retryAfter = time.Hour

// Due reports whether a failed attempt may be repeated; file was written at its failure.
func Due(file string) bool {
	info, err := os.Lstat(file)
	return err == nil && time.Since(info.ModTime()) > retryAfter
}
