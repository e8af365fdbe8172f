package npm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sync/errgroup"
)

// A layerDir has a folder for each lock:
//
//	layer/       what a sandbox sees: node_modules
//	layer.json   a Layer; its modification time is the time of its last use, within a minute (useNoted)
type layerDir struct {
	dir    string
	cache  *cachedir.Cache
	recent *cachedir.ParsedFiles[Layer]
}

// layerFormat is the version of a layer's folder. Layers of other versions are made again.
const layerFormat = 1

// A Layer is the packages of a lock, unpacked.
type Layer struct {
	Format   int      `json:"format"`
	ID       string   `json:"id"`
	Wanted   []string `json:"wanted"` // NAME VERSION of each package that the lock was made for; the first lock, if two differ in that alone
	Packages int      `json:"packages"`
	Bytes    int64    `json:"bytes"`
	Files    int      `json:"files"` // with folders

	Scripts  []string  `json:"-"` // packages with install scripts, which have not run on it; known of what Ensure returns
	Needed   []string  `json:"-"` // those of Scripts that others cannot do without
	Dir      string    `json:"-"` // has node_modules; absolute, without symlinks in its path
	LastUsed time.Time `json:"-"`
}

func newLayerDir(cache *cachedir.Cache) layerDir {
	return layerDir{filepath.Join(cache.Dir, "layers"), cache, cachedir.NewParsedFiles(parseRecord)}
}

func parseRecord(content []byte) (l Layer, err error) {
	err = unmarshal(content, &l)
	return l, err
}

var idForm = text.Pattern(`^sha256-[0-9a-f]{64}$`)

// layerName names the folder of a layer by its contents.
func layerName(tree *Tree) string {
	sum := sha256.New()
	fmt.Fprintln(sum, layerFormat)
	for _, p := range tree.packages {
		fmt.Fprintf(sum, "%q %q %q %s\n", p.Path, p.Name, p.Version, p.SHA512)
	}
	return fmt.Sprintf("sha256-%x", sum.Sum(nil))
}

func (d layerDir) path(name string) string   { return filepath.Join(d.dir, name) }
func (d layerDir) record(name string) string { return filepath.Join(d.path(name), recordFile) }

const recordFile = "layer.json"

// read returns the complete layer of a folder, or nil.
func (d layerDir) read(name string) *Layer {
	l, err := d.recent.Read(d.record(name))
	if err != nil || l.Format != layerFormat || l.ID != name {
		return nil
	}
	l.Dir = filepath.Join(d.path(name), "layer")
	info, err := os.Lstat(l.Dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o555 != 0o555 {
		return nil
	}
	if info, err := os.Stat(d.record(name)); err == nil {
		l.LastUsed = info.ModTime()
	}
	return &l
}

// useNoted is how long a recorded use covers later ones.
const useNoted = time.Minute

// load returns a complete layer, or nil. While this process runs, no other removes it.
func (d layerDir) load(name string) *Layer {
	if !d.cache.Acquire(name) {
		return nil
	}
	l := d.read(name)
	if l == nil {
		d.cache.Release(name)
		return nil
	}
	if now := time.Now(); now.Sub(l.LastUsed).Abs() > useNoted {
		_ = os.Chtimes(d.record(name), now, now) // fails in a store that another user shares
	}
	return l
}

// tarballsAtOnce is how many tarballs are fetched and unpacked at the same time.
const tarballsAtOnce = 6

// maxTarball bounds one tarball, in bytes.
const maxTarball = 256 << 20

// fill fills the folder of a layer.
func (j *job) fill(ctx context.Context, name, dir string) error {
	inner := filepath.Join(dir, "layer")
	if err := errors.Join(os.Mkdir(inner, 0o755), os.Chmod(inner, 0o755)); err != nil {
		return err
	}
	root, err := os.OpenRoot(inner)
	if err != nil {
		return err
	}
	defer root.Close()
	// All folders first: a package may be inside another one's folder, and they are
	// unpacked at the same time.
	b := newBudget(j.MaxBytes)
	for _, p := range j.tree.packages {
		if err := errors.Join(b.spend(0), rootdir.MakeDirs(root, p.Path)); err != nil {
			return err
		}
	}
	if err := j.fetchAll(ctx, root, dir, b); err != nil {
		return err
	}
	l := Layer{Format: layerFormat, ID: name, Packages: len(j.tree.packages), Bytes: j.MaxBytes - b.bytes.Load(), Files: maxFiles - int(b.files.Load())}
	for _, p := range j.tree.Wanted() {
		l.Wanted = append(l.Wanted, p.Name+" "+p.Version)
	}
	return errors.Join(cachedir.WriteJSON(filepath.Join(dir, recordFile), l), os.Chmod(dir, 0o755))
}

// fetchAll fetches and unpacks all packages. Dir is for the tarballs, which are removed.
func (j *job) fetchAll(ctx context.Context, root *os.Root, dir string, b *budget) error {
	var mu sync.Mutex
	done := 0
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(tarballsAtOnce)
	for i, p := range j.tree.packages {
		group.Go(func() (err error) {
			defer contain.Error("unpacking a package of npm", &err)
			release, err := memory.Fetch(inner, memory.Tarball)
			if err != nil {
				return err
			}
			defer release()
			if err := j.fetchOne(inner, root, p, filepath.Join(dir, fmt.Sprintf("%d.tgz", i)), b); err != nil {
				return fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
			}
			mu.Lock() // progress is not called concurrently
			defer mu.Unlock()
			done++
			total := len(j.tree.packages)
			j.progress(packages.Progress{Done: int64(done), Total: int64(total), Text: "fetching " + text.Plural(total, "package")})
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fetchOne fetches and unpacks one package.
func (j *job) fetchOne(ctx context.Context, root *os.Root, p Package, file string, b *budget) error {
	limit := min(max(j.MaxBytes, 1), maxTarball)
	if err := j.client.Download(ctx, j.from, p.URL, fetch.SHA512(p.SHA512), file, limit, func(int64) {}); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = b.fetch(info.Size())
	}
	if err == nil {
		err = j.tree.unpack(ctx, root, p, f, b)
	}
	return cmp.Or(err, os.Remove(file))
}
