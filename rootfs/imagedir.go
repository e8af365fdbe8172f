package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// An imageDir has a folder for each unpacked image, and for the host's own system:
//
//	root/        the root directory of sandboxes
//	image.json   a record
//
// Beside them are files about what was added to the root later, such as bytecode.
type imageDir struct {
	dir   string
	cache *cachedir.Cache
}

// format is the version of an image's folder. Images of other versions are unpacked again.
const format = 3

// record is image.json. A folder that has it under its final name is complete.
type record struct {
	Format   int       `json:"format"`
	Ref      string    `json:"ref"` // of the first pull
	Digest   string    `json:"digest"`
	Created  time.Time `json:"created"`
	Platform string    `json:"platform,omitempty"`
	Layers   []Layer   `json:"layers,omitempty"` // lowest first
	Env      []string  `json:"env,omitempty"`
	Python   string    `json:"python"`
	Binds    []Bind    `json:"binds,omitempty"`

	// Spare is how many files may be added to the image; nil in records of old versions.
	Spare *int `json:"spare,omitempty"`
}

// Layer is one layer of an image.
type Layer struct {
	DiffID string `json:"diffID"` // digest of its uncompressed tar
	Size   int64  `json:"size"`   // bytes on disk
}

// dirName names the folder of an image or layer: "sha256-…", since lists of paths are
// separated by colons.
func dirName(digest string) string { return strings.Replace(digest, ":", "-", 1) }

func recordFile(imageDir string) string { return filepath.Join(imageDir, "image.json") }

// readRecord reads the record of an image's folder, and returns nil if it is unusable.
func readRecord(imageDir string) *record {
	var rec record
	if err := cachedir.ReadJSON(recordFile(imageDir), &rec); err != nil || rec.Format != format {
		return nil
	}
	return &rec
}

func (d imageDir) path(name string) string { return filepath.Join(d.dir, name) }

// load returns the complete root in a folder, or nil. While this process runs, no other
// removes it.
func (d imageDir) load(name, digest, ref string) (root *Root) {
	if !filepath.IsLocal(name) || !d.cache.Acquire(name) {
		return nil
	}
	defer func() {
		if root == nil {
			d.cache.Release(name)
		}
	}()
	rec := readRecord(d.path(name))
	if rec == nil || rec.Digest != digest {
		return nil
	}
	dir := filepath.Join(d.path(name), "root")
	// A sandbox's IDs are not the user's: they cannot use a root that has lost its mode, for
	// example by chmod -R on the home folder.
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || info.Mode().Perm()&0o555 != 0o555 {
		return nil
	}
	// The modification time is the time of the last use. In a store that another user shares
	// it cannot be set, and need not be.
	now := time.Now()
	_ = os.Chtimes(recordFile(d.path(name)), now, now)
	root = &Root{Dir: dir, Ref: ref, Digest: rec.Digest, Env: rec.Env, Python: rec.Python, Binds: rec.Binds, spare: DefaultMaxEntries, cache: d.cache}
	if rec.Spare != nil {
		root.spare = *rec.Spare
	}
	return root
}

// ensure returns the root in a folder. If there is none, fill makes it in an empty
// directory, which is then renamed.
func (d imageDir) ensure(ctx context.Context, name, digest, ref string, fill func(dir string) (*record, error)) (*Root, error) {
	if root := d.load(name, digest, ref); root != nil {
		return root, nil
	}
	unlock, err := d.cache.Wait(ctx, name, state.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if root := d.load(name, digest, ref); root != nil {
		return root, nil
	}
	if err := d.build(name, digest, ref, fill); err != nil {
		return nil, err
	}
	if root := d.load(name, digest, ref); root != nil {
		return root, nil
	}
	return nil, errors.New("the unpacked image vanished: something else is changing the image store")
}

// build makes the folder of an image. The caller has the lock.
func (d imageDir) build(name, digest, ref string, fill func(dir string) (*record, error)) error {
	return cachedir.Build(d.dir, name, func(temp string) error {
		root := filepath.Join(temp, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			return err
		}
		rec, err := fill(root)
		if err != nil {
			return err
		}
		rec.Format, rec.Ref, rec.Digest, rec.Created = format, ref, digest, time.Now().UTC()
		if err := cachedir.WriteJSON(recordFile(temp), rec); err != nil {
			return err
		}
		// Not sooner: until now it is open to this user only.
		return errors.Join(os.Chmod(root, 0o755), os.Chmod(temp, 0o755))
	})
}

// remove removes an image's folder. The caller has locked it.
func (d imageDir) remove(name string) error { return cachedir.Remove(d.path(name), "image.json") }

// removeUnusable removes the images of older formats and damaged ones.
func (d imageDir) removeUnusable() (err error) {
	dirs, err := state.Match(d.path(""), "sha256-*")
	for _, dir := range dirs {
		if readRecord(dir) != nil {
			continue
		}
		// A process that is building it has the lock.
		if unlock, lockErr := d.cache.LockUnused(filepath.Base(dir)); lockErr == nil {
			err = errors.Join(err, rootdir.RemoveAll(dir))
			unlock()
		}
	}
	return err
}

// layers returns the names of the folders of all layers that images have.
func (d imageDir) layers() (map[string]bool, error) {
	names := map[string]bool{}
	dirs, err := state.Match(d.path(""), "*")
	for _, dir := range dirs {
		if rec := readRecord(dir); rec != nil {
			for _, l := range rec.Layers {
				names[dirName(l.DiffID)] = true
			}
		}
	}
	return names, err
}
