package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"golang.org/x/sys/unix"
)

// Verify reads an image again, all of it: each layer's contents against the
// digests they had when the layer's own digest was found right, and the root
// against a new merge of the layers. It returns what is wrong, at most
// maxDamage of it, or an error if it could not find out.
func (s *Store) Verify(ctx context.Context, image *Image) (damage []string, err error) {
	d := &damageList{}
	for _, l := range image.Layers {
		if err := s.verifyLayer(ctx, l.DiffID, d); err != nil {
			return nil, fmt.Errorf("verifying layer %s: %w", l.DiffID, err)
		}
	}
	if len(d.found) == 0 {
		if err := s.verifyRoot(ctx, image, d); err != nil {
			return nil, fmt.Errorf("verifying image %s: %w", image.Digest, err)
		}
	}
	return d.found, nil
}

// maxDamage keeps a list of damage readable.
const maxDamage = 20

type damageList struct{ found []string }

func (d *damageList) add(format string, args ...any) {
	if len(d.found) < maxDamage {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	}
}

// verifyLayer compares the contents of a layer with what its entries say.
func (s *Store) verifyLayer(ctx context.Context, diffID string, d *damageList) error {
	dir := s.layerDir(diffID)
	if s.loadLayer(diffID) == nil {
		d.add("layer %s is gone", diffID)
		return nil
	}
	err := unpack.Verify(ctx, dir, func(name string, problem error) { d.add("%s: %v", rootdir.Quote(name), problem) })
	if err != nil && ctx.Err() == nil {
		d.add("layer %s: %v", diffID, err)
		return nil
	}
	return err
}

// verifyRoot merges the layers anew and compares the roots, name by name.
func (s *Store) verifyRoot(ctx context.Context, image *Image, d *damageList) error {
	// What is made here has an unfinished root's name, and whoever opens the
	// store sweeps those that nobody has locked.
	making, err := s.locks.wait(ctx, dirName(image.Digest), unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer making()
	pulling, err := s.locks.wait(ctx, pullsLock, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer pulling()
	temp, err := os.MkdirTemp(filepath.Join(s.dir, rootsFolder), tempPrefix+dirName(image.Digest)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = rootdir.RemoveAll(temp) }()
	fresh, err := os.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer fresh.Close()
	m := unpack.NewMerger(fresh, unpack.NewBudget(s.MaxBytes, s.MaxEntries))
	for _, l := range image.Layers {
		if err := m.Merge(s.layerDir(l.DiffID)); err != nil {
			return err
		}
	}
	if err := errors.Join(m.SetDirModes(), makeMountPoints(fresh), addEtcFiles(fresh)); err != nil {
		return err
	}
	root, err := os.OpenRoot(image.Dir)
	if err != nil {
		d.add("%v", err)
		return nil
	}
	defer root.Close()
	c := comparison{ctx: ctx, want: fresh, got: root, damage: d}
	if err := readJSON(filepath.Join(filepath.Dir(image.Dir), "bytecode.json"), &c.added); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.add("bytecode.json: %v", err)
	}
	if c.points, err = readMountPoints(filepath.Join(filepath.Dir(image.Dir), mountPointsName)); err != nil {
		d.add("%s: %v", mountPointsName, err)
	}
	return c.dir(".")
}

// A comparison finds where two trees differ.
type comparison struct {
	ctx       context.Context
	want, got *os.Root
	added     bytecodeRecord
	points    []string // to be mounted on
	damage    *damageList
}

func (c *comparison) dir(dir string) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	want, err := rootdir.ReadDir(c.want, dir)
	if err != nil {
		return err
	}
	got, err := rootdir.ReadDir(c.got, dir)
	if err != nil {
		c.damage.add("%v", err)
		return nil
	}
	extra := map[string]bool{}
	for _, e := range got {
		extra[e.Name()] = true
	}
	for _, e := range want {
		delete(extra, e.Name())
		if err := c.entry(path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for name := range extra {
		c.extra(path.Join(dir, name))
	}
	return nil
}

func (c *comparison) entry(name string) error {
	want, err := c.want.Lstat(name)
	if err != nil {
		return err
	}
	got, err := c.got.Lstat(name)
	switch {
	case c.added.Files[name] != "": // better bytecode than the image's own
		c.extra(name)
	case err != nil:
		c.damage.add("%v", err)
	case got.Mode() != want.Mode():
		c.damage.add("%s: is %s and should be %s", rootdir.Quote(name), got.Mode(), want.Mode())
	case want.IsDir():
		return c.dir(name)
	case want.Mode()&fs.ModeSymlink != 0:
		a, errA := c.want.Readlink(name)
		b, errB := c.got.Readlink(name)
		if errA != nil || errB != nil || a != b {
			c.damage.add("%s: leads to %q and should lead to %q", rootdir.Quote(name), b, a)
		}
	case !os.SameFile(want, got) && !c.sameContent(name):
		c.damage.add("%s: its content has changed", rootdir.Quote(name))
	}
	return nil
}

// sameContent compares two files that are not one, where none could be linked.
func (c *comparison) sameContent(name string) bool {
	a, errA := hashFile(c.want, name)
	b, errB := hashFile(c.got, name)
	return errA == nil && errB == nil && a == b
}

// extra looks at what no layer has. Bytecode that was added is as it was then.
func (c *comparison) extra(name string) {
	info, err := c.got.Lstat(name)
	point := slices.Contains(c.points, name)
	if err == nil && point && info.Mode().IsRegular() && info.Size() == 0 {
		return
	}
	if err == nil && info.IsDir() && (point || path.Base(name) == "__pycache__") {
		entries, err := rootdir.ReadDir(c.got, name)
		if err != nil {
			c.damage.add("%v", err)
		}
		for _, e := range entries {
			c.extra(path.Join(name, e.Name()))
		}
		return
	}
	sum, known := c.added.Files[name]
	if !known {
		c.damage.add("%s: is not of the image", rootdir.Quote(name))
		return
	}
	if got, err := hashFile(c.got, name); err != nil || got != sum {
		c.damage.add("%s: its content has changed", rootdir.Quote(name))
	}
}

func hashFile(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Discard makes an image and those of its layers that are damaged count as
// absent, so that the next pull fetches them again. The error is ErrInUse if a
// process uses the image.
func (s *Store) Discard(ctx context.Context, image *Image) error {
	name := dirName(image.Digest)
	release, err := s.claim(name)
	if err != nil {
		return err
	}
	defer release()
	for _, l := range image.Layers {
		d := &damageList{}
		if err := s.verifyLayer(ctx, l.DiffID, d); err != nil {
			return err
		}
		if len(d.found) > 0 {
			if err := rootdir.RemoveAll(s.layerDir(l.DiffID)); err != nil {
				return err
			}
		}
	}
	return rootdir.RemoveAll(filepath.Join(s.dir, rootsFolder, name))
}
