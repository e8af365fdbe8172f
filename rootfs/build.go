package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempPrefix begins the names of unfinished roots. What follows is the name of
// the lock of whoever works on it.
const tempPrefix = ".tmp-"

// ready returns the root in the named folder. If there is none, build fills an
// empty directory with it, which then gets its name in one step.
func (s *Store) ready(ctx context.Context, name, digest, ref string, build func(dir string) (*record, error)) (*Root, error) {
	if root := s.load(name, digest, ref); root != nil {
		return root, nil
	}
	unlock, err := s.lock(ctx, name)
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
func (s *Store) build(name, digest, ref string, fill func(dir string) (*record, error)) (err error) {
	s.removeLeftovers(name)
	temp, err := os.MkdirTemp(filepath.Join(s.dir, "rootfs"), tempPrefix+name+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeTree(temp))
		}
	}()
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
	if err := errors.Join(os.Chmod(root, 0o755), os.Chmod(temp, 0o755)); err != nil {
		return err
	}
	return s.publish(temp, name)
}

// publish gives a finished root its name. Something that has it already was not
// good enough to be loaded.
func (s *Store) publish(temp, name string) error {
	final := filepath.Join(s.dir, "rootfs", name)
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
	return errors.Join(syncDir(filepath.Dir(final)), removeTree(temp+"-old"))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// sweep removes the unfinished roots that nobody works on any more. What cannot
// be removed is tried again next time: it is in nobody's way.
func (s *Store) sweep() {
	for _, temp := range s.unfinished() {
		unlock, err := s.tryLock(temp.name)
		if err != nil {
			continue
		}
		_ = removeTree(temp.dir)
		unlock()
	}
}

// removeLeftovers removes the unfinished roots of one name. The caller has its
// lock, so whoever made them is gone.
func (s *Store) removeLeftovers(name string) {
	for _, temp := range s.unfinished() {
		if temp.name == name {
			_ = removeTree(temp.dir)
		}
	}
}

type unfinishedRoot struct{ dir, name string }

// unfinished lists the unfinished roots with the names that they were to have.
func (s *Store) unfinished() []unfinishedRoot {
	folder := filepath.Join(s.dir, "rootfs")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var found []unfinishedRoot
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), tempPrefix)
		if !ok {
			continue
		}
		// sha256-<hex>-<random>
		if parts := strings.SplitN(rest, "-", 3); len(parts) == 3 {
			found = append(found, unfinishedRoot{filepath.Join(folder, e.Name()), parts[0] + "-" + parts[1]})
		}
	}
	return found
}
