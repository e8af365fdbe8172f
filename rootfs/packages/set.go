package packages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"golang.org/x/sync/errgroup"
)

// A setDir has a folder for each set:
//
//	packages/       what a sandbox sees at Target: links to the files of wheels, and bytecode
//	set.json        a Set; its modification time is the time of its last use, within a minute (useNoted)
//	bytecode.json   records that bytecode was made, or why not
type setDir struct {
	dir    string
	cache  *cachedir.Cache
	recent *cachedir.ParsedFiles[Set]
}

// setFormat is the version of a set's folder. Sets of other versions are built again.
const setFormat = 1

// A Set is the packages of a script on one image.
type Set struct {
	Format   int       `json:"format"`
	ID       string    `json:"id"`
	Image    Image     `json:"image"`
	Ref      string    `json:"ref"` // of the image, as it was when the set was made
	Packages []Package `json:"packages"`
	Bytes    int64     `json:"bytes"`
	Files    int       `json:"files"`

	Dir      string    `json:"-"` // of the packages, absolute, without symlinks in its path
	LastUsed time.Time `json:"-"`
}

// A Package is one of a set.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of its wheel
}

// setName names the folder of a set by its contents.
func setName(image Image, lock *Lock) string {
	var digests []string
	for _, p := range lock.packages {
		digests = append(digests, p.Wheels[0].SHA256)
	}
	slices.Sort(digests)
	return fmt.Sprintf("sha256-%x", sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q", setFormat, image.ID, image.Python, digests)))
}

func (d setDir) path(name string) string   { return filepath.Join(d.dir, name) }
func (d setDir) record(name string) string { return filepath.Join(d.path(name), "set.json") }

// read returns the complete set of a folder, or nil.
func (d setDir) read(name string) *Set {
	s, err := d.recent.Read(d.record(name))
	if err != nil || s.Format != setFormat || s.ID != name {
		return nil
	}
	s.Dir = filepath.Join(d.path(name), "packages")
	info, err := os.Lstat(s.Dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o555 != 0o555 {
		return nil
	}
	if info, err := os.Stat(d.record(name)); err == nil {
		s.LastUsed = info.ModTime()
	}
	return &s
}

// useNoted is how long a recorded use covers later ones. To record each would be a write to
// disk in every run.
const useNoted = time.Minute

// load returns a complete set, or nil. While this process runs, no other removes it.
func (d setDir) load(name string) *Set {
	if !d.cache.Acquire(name) {
		return nil
	}
	s := d.read(name)
	if s == nil {
		d.cache.Release(name)
		return nil
	}
	if now := time.Now(); now.Sub(s.LastUsed).Abs() > useNoted {
		_ = os.Chtimes(d.record(name), now, now) // fails in a store that another user shares
	}
	return s
}

// wheelsAtOnce is how many wheels are fetched and unpacked at the same time.
const wheelsAtOnce = 6

// install builds the set for a lock that was checked.
func (j *job) install(ctx context.Context, lock *Lock) (*Set, error) {
	name := setName(j.Image, lock)
	if set := j.sets.load(name); set != nil {
		return set, nil
	}
	keep, err := j.cache.Wait(ctx, wheelsLock, state.Shared)
	if err != nil {
		return nil, err
	}
	defer keep()
	var hidden []string
	asking, inner := errgroup.WithContext(ctx)
	asking.Go(func() (err error) {
		defer contain.Error("comparing packages with those of the image", &err)
		hidden, err = j.conflicts(inner, lock)
		return err
	})
	set, err := j.fetchWheels(ctx, lock)
	if err = errors.Join(err, asking.Wait()); err != nil {
		return nil, err
	}
	set.Format, set.ID, set.Image, set.Ref = setFormat, name, j.Image, j.Ref
	unlock, err := j.cache.Wait(ctx, name, state.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if set := j.sets.load(name); set != nil {
		return set, nil
	}
	j.progress(Progress{Text: "putting together " + count(len(set.Packages))})
	err = cachedir.Build(j.sets.dir, name, func(dir string) error {
		packages := filepath.Join(dir, "packages")
		if err := os.Mkdir(packages, 0o755); err != nil {
			return err
		}
		for _, p := range set.Packages {
			if err := linkTree(ctx, j.wheels.files(wheelName(p.SHA256)), packages); err != nil {
				return fmt.Errorf("adding %s: %w", p.Name, err)
			}
		}
		return errors.Join(writeHidden(packages, hidden), cachedir.WriteJSON(filepath.Join(dir, "set.json"), set), os.Chmod(packages, 0o755), os.Chmod(dir, 0o755))
	})
	if err != nil {
		return nil, err
	}
	if set := j.sets.load(name); set != nil {
		return set, nil
	}
	return nil, errors.New("the packages vanished: something else is changing the store of packages")
}

// fetchWheels fetches the wheels of a lock, and describes them as a set.
func (j *job) fetchWheels(ctx context.Context, lock *Lock) (*Set, error) {
	if missing := j.missing(lock); j.Offline && missing != nil {
		return nil, fmt.Errorf("of the packages for %s, %s is not here, and %w", briefly(j.Requirements), briefly(missing), ErrOffline)
	}
	var total int64
	for _, p := range lock.packages {
		total += p.Wheels[0].Size
	}
	set, b := &Set{Packages: make([]Package, len(lock.packages))}, newBudget(j.MaxBytes)
	var mu sync.Mutex
	var done int64
	arrived := func(bytes int64) {
		mu.Lock() // progress is not called concurrently
		defer mu.Unlock()
		done += bytes
		j.progress(Progress{Done: done, Total: total, Text: "fetching " + count(len(lock.packages))})
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(wheelsAtOnce)
	for i, p := range lock.packages {
		group.Go(func() (err error) {
			defer contain.Error("unpacking a package", &err)
			release, err := memory.Fetch(inner, memory.Wheel)
			if err != nil {
				return err
			}
			defer release()
			err = j.ensureWheel(inner, p, b, arrived)
			set.Packages[i] = Package{p.Name, p.Version, p.Wheels[0].SHA256}
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	set.Bytes, set.Files = j.MaxBytes-b.bytes.Load(), maxFiles-int(b.files.Load())
	slices.SortFunc(set.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return set, err
}

// missing returns the packages of a lock whose wheels are not in the store.
func (s *Store) missing(lock *Lock) (names []string) {
	for _, p := range lock.packages {
		if s.wheels.load(wheelName(p.Wheels[0].SHA256)) == nil {
			names = append(names, p.Name+" "+p.Version)
		}
	}
	return names
}

func count(packages int) string { return text.Plural(packages, "package") }

// linkTree adds the files of a wheel to a set. If two wheels have a file of the same name,
// such as the __init__.py of a namespace, the first one wins.
func linkTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		target := filepath.Join(to, name)
		if e.IsDir() {
			if err := os.Mkdir(target, 0o755); err != nil {
				return checkOther(err, target, name, true)
			}
			return os.Chmod(target, 0o755)
		}
		return checkOther(os.Link(path, target), target, name, false)
	})
}

// checkOther lets a folder be one of another package too, and a file a file of it.
func checkOther(err error, target, name string, isDir bool) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(target)
	switch {
	case err != nil || info.IsDir() == isDir:
		return err
	case isDir:
		return fmt.Errorf("%s is a file of another package", name)
	}
	return fmt.Errorf("%s is a folder of another package", name)
}
