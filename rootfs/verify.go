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

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

// maxDamage keeps a list of damage readable.
const maxDamage = 20

type damageList struct{ found []string }

func (d *damageList) add(format string, args ...any) {
	if len(d.found) < maxDamage {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	}
}

// verifyRoot merges the layers of an image again and compares the roots name by name.
func verifyRoot(ctx context.Context, image *Image, d imageDir, layers layerDir, b *unpack.Budget, damage *damageList) error {
	// The new root has the name of an unfinished one, and every process that opens the store
	// removes those that are not locked.
	making, err := d.cache.Wait(ctx, dirName(image.Digest), state.Shared)
	if err != nil {
		return err
	}
	defer making()
	pulling, err := d.cache.Wait(ctx, pullsLock, state.Shared)
	if err != nil {
		return err
	}
	defer pulling()
	temp, err := os.MkdirTemp(d.dir, cachedir.TempPrefix+dirName(image.Digest)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = rootdir.RemoveAll(temp) }()
	fresh, err := mergeStored(ctx, temp, image.Layers, layers, b)
	if err != nil {
		return err
	}
	defer fresh.Close()
	return compareRoots(ctx, fresh, image.Dir, damage)
}

// compareRoots compares the root of an image with a correct one.
func compareRoots(ctx context.Context, want *os.Root, dir string, damage *damageList) error {
	got, err := os.OpenRoot(dir)
	if err != nil {
		damage.add("%v", err)
		return nil
	}
	defer got.Close()
	c := comparison{want: want, got: got, damage: damage}
	if err := cachedir.ReadList(ctx, filepath.Join(filepath.Dir(dir), bytecodeName), &c.added); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		damage.add("%s: %v", bytecodeName, err)
	}
	if c.points, err = readMountPoints(filepath.Join(filepath.Dir(dir), mountPointsName)); err != nil {
		damage.add("%s: %v", mountPointsName, err)
	}
	return c.compareDir(ctx, ".")
}

// A comparison finds where two trees differ.
type comparison struct {
	want, got *os.Root
	added     bytecodeRecord
	points    []string // mount points
	damage    *damageList
}

func (c *comparison) compareDir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
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
	rest := map[string]bool{}
	for _, e := range got {
		rest[e.Name()] = true
	}
	for _, e := range want {
		delete(rest, e.Name())
		if err := c.compareEntry(ctx, path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for name := range rest {
		c.checkExtra(path.Join(dir, name))
	}
	return nil
}

func (c *comparison) compareEntry(ctx context.Context, name string) error {
	want, err := c.want.Lstat(name)
	if err != nil {
		return err
	}
	got, err := c.got.Lstat(name)
	switch {
	case c.added.Files[name] != "": // replaces the image's own bytecode
		c.checkExtra(name)
	case err != nil:
		c.damage.add("%v", err)
	case got.Mode() != want.Mode():
		c.damage.add("%s: is %s and should be %s", rootdir.Quote(name), got.Mode(), want.Mode())
	case want.IsDir():
		return c.compareDir(ctx, name)
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

// sameContent compares two files that could not be hard links.
func (c *comparison) sameContent(name string) bool {
	a, errA := hashFile(c.want, name)
	b, errB := hashFile(c.got, name)
	return errA == nil && errB == nil && a == b
}

// checkExtra checks a name that no layer has. Added bytecode must be unchanged.
func (c *comparison) checkExtra(name string) {
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
			c.checkExtra(path.Join(name, e.Name()))
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
