package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

// The folders of a store that hold one folder for each root and each layer.
const (
	rootsFolder  = "rootfs"
	layersFolder = "layers"
)

// tempPrefix begins the names of unfinished roots and layers. What follows is the name of
// the lock of whoever works on it.
const tempPrefix = ".tmp-"

// ready returns the root in the named folder. If there is none, build fills an
// empty directory with it, which then gets its name in one step.
func (s *Store) ready(ctx context.Context, name, digest, ref string, build func(dir string) (*record, error)) (*Root, error) {
	if root := s.load(name, digest, ref); root != nil {
		return root, nil
	}
	unlock, err := s.locks.wait(ctx, name, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if root := s.load(name, digest, ref); root != nil {
		return root, nil
	}
	if err := s.build(name, digest, ref, build); err != nil {
		return nil, err
	}
	if root := s.load(name, digest, ref); root != nil {
		return root, nil
	}
	return nil, errors.New("the unpacked image vanished: something else is changing the image store")
}

// build makes a root aside and moves it into place. The caller has the lock.
func (s *Store) build(name, digest, ref string, fill func(dir string) (*record, error)) error {
	return s.buildAtomic(rootsFolder, name, func(temp string) error {
		root := filepath.Join(temp, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			return err
		}
		rec, err := fill(root)
		if err != nil {
			return err
		}
		rec.Format, rec.Ref, rec.Digest, rec.Created = format, ref, digest, time.Now().UTC()
		if err := writeJSON(filepath.Join(temp, "image.json"), rec); err != nil {
			return err
		}
		// Not sooner: until now nobody else has any business in it.
		return errors.Join(os.Chmod(root, 0o755), os.Chmod(temp, 0o755))
	})
}

// buildAtomic fills an empty folder and gives it its name in one step. The caller has
// the lock of the name.
func (s *Store) buildAtomic(folder, name string, fill func(dir string) error) (err error) {
	s.removeLeftovers(folder, name)
	temp, err := os.MkdirTemp(filepath.Join(s.dir, folder), tempPrefix+name+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rootdir.RemoveAll(temp))
		}
	}()
	if err := fill(temp); err != nil {
		return err
	}
	return publish(temp, filepath.Join(s.dir, folder, name))
}

// publish gives a finished folder its name. Something that has it already was
// not good enough to be loaded.
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

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// sweep removes the unfinished roots and layers that nobody works on any more.
// What cannot be removed is tried again next time: it is in nobody's way.
func (s *Store) sweep() {
	for _, temp := range s.unfinished() {
		unlock, err := s.locks.try(temp.lock(), unix.LOCK_EX)
		if err != nil {
			continue
		}
		_ = rootdir.RemoveAll(temp.dir)
		unlock()
	}
}

// removeLeftovers removes what is unfinished of one name. The caller has its
// lock, so whoever made it is gone.
func (s *Store) removeLeftovers(folder, name string) {
	for _, temp := range s.unfinished() {
		if temp.folder == folder && temp.name == name {
			_ = rootdir.RemoveAll(temp.dir)
		}
	}
}

// An unfinished root or layer, with the name that it was to have.
type unfinished struct{ dir, folder, name string }

// lock names the lock of whoever works on it.
func (u unfinished) lock() string {
	if u.folder == layersFolder {
		return layerLock(u.name)
	}
	return u.name
}

func layerLock(name string) string { return "layer-" + name }

func (s *Store) unfinished() []unfinished {
	var found []unfinished
	for _, folder := range []string{rootsFolder, layersFolder} {
		entries, _ := os.ReadDir(filepath.Join(s.dir, folder))
		for _, e := range entries {
			rest, ok := strings.CutPrefix(e.Name(), tempPrefix)
			if !ok {
				continue
			}
			// sha256-<hex>-<random>
			if parts := strings.SplitN(rest, "-", 3); len(parts) == 3 {
				found = append(found, unfinished{filepath.Join(s.dir, folder, e.Name()), folder, parts[0] + "-" + parts[1]})
			}
		}
	}
	return found
}
