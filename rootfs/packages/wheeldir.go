package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
)

// A wheelDir has a folder for each unpacked wheel:
//
//	files/       what code can import
//	wheel.json   a wheelRecord
type wheelDir struct {
	dir string
}

// wheelFormat is the version of a wheel's folder. Wheels of other versions are unpacked
// again.
const wheelFormat = 1

// wheelRecord is wheel.json. A folder that has it under its final name is complete.
type wheelRecord struct {
	Format int   `json:"format"`
	Bytes  int64 `json:"bytes"` // unpacked
	Files  int   `json:"files"`
}

func wheelName(digest string) string { return "sha256-" + digest }

func (d wheelDir) path(name string) string { return filepath.Join(d.dir, name) }

// files is the folder of a wheel's files.
func (d wheelDir) files(name string) string { return filepath.Join(d.path(name), "files") }

// load returns the record of a complete wheel, or nil.
func (d wheelDir) load(name string) *wheelRecord {
	var rec wheelRecord
	if cachedir.ReadJSON(filepath.Join(d.path(name), "wheel.json"), &rec) != nil || rec.Format != wheelFormat {
		return nil
	}
	if info, err := os.Lstat(d.files(name)); err != nil || !info.IsDir() {
		return nil
	}
	return &rec
}

// checkIdentity checks that a wheel in the store belongs to a package.
func (d wheelDir) checkIdentity(name string, p lockedPackage) error {
	root, err := os.OpenRoot(d.files(name))
	if err != nil {
		return err
	}
	defer root.Close()
	return checkIdentity(root, p)
}

// A budget is the space that the packages of a request may still use.
type budget struct {
	bytes, files atomic.Int64
	limit        int64
}

// maxFiles bounds the files of a set.
const maxFiles = 200_000

func newBudget(bytes int64) *budget {
	b := &budget{limit: bytes}
	b.bytes.Store(bytes)
	b.files.Store(maxFiles)
	return b
}

func (b *budget) spend(bytes int64, files int) error {
	if b.bytes.Add(-bytes) < 0 {
		return tooLarge(b.limit)
	}
	if b.files.Add(-int64(files)) < 0 {
		return requestErrorf("the packages have more than %d files", maxFiles)
	}
	return nil
}

func tooLarge(limit int64) error {
	return requestErrorf("the packages have more than %s unpacked ([packages] maxBytes)", sizeText(limit))
}

// ensureWheel fetches and unpacks a wheel unless the store has it.
func (j *job) ensureWheel(ctx context.Context, p lockedPackage, b *budget, progress func(bytes int64)) error {
	w := p.Wheels[0]
	digest := w.SHA256
	name := wheelName(digest)
	if err := p.checkFile(w.file()); err != nil {
		return fmt.Errorf("%s: %w", w.file(), err)
	}
	unlock, err := j.cache.Wait(ctx, wheelLock(name), state.Exclusive)
	if err != nil {
		return fmt.Errorf("waiting for another process: %w", err)
	}
	defer unlock()
	if rec := j.wheels.load(name); rec != nil {
		progress(w.Size)
		if err := j.wheels.checkIdentity(name, p); err != nil {
			return fmt.Errorf("%s: %w", w.file(), err)
		}
		return b.spend(rec.Bytes, rec.Files)
	}
	err = cachedir.Build(j.wheels.dir, name, func(dir string) error {
		file := filepath.Join(dir, "wheel.whl")
		if err := j.client.Download(ctx, j.from, w.URL, fetch.SHA256(digest), file, max(b.limit, 1), progress); err != nil {
			return err
		}
		rec, err := unpackWheel(ctx, file, filepath.Join(dir, "files"), p, b)
		if err != nil {
			return err
		}
		return errors.Join(os.Remove(file), cachedir.WriteJSON(filepath.Join(dir, "wheel.json"), rec), os.Chmod(dir, 0o755))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", w.file(), err)
	}
	return nil
}
