package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/images"
)

// format is the version of what lies in the store. Roots of another one are
// unpacked anew.
const format = 3

// maxRecord bounds the small files of the store, which other programs of the
// user could have damaged.
const maxRecord = 32 << 20

// record is image.json beside an unpacked root. Its presence under the final
// name is what says that the root is complete.
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
}

// Layer is one layer of an image.
type Layer struct {
	DiffID string `json:"diffID"` // digest of its uncompressed tar
	Size   int64  `json:"size"`   // bytes on disk
}

// tag is refs/….json: which image a reference meant when it was last pulled.
// The file's modification time is when the registry was last asked.
type tag struct {
	Ref    string `json:"ref"`  // as the user wrote it
	Name   string `json:"name"` // normalised
	Digest string `json:"digest"`
}

// cached returns the root that a registry's reference meant at its last pull,
// or nil. A local source is never answered from here, as its content may have
// changed.
func (s *Store) cached(r images.Reference, ref string) *Root {
	if r.Local() {
		return nil
	}
	var t tag
	if err := readJSON(s.refFile(r), &t); err != nil || t.Name != r.Name {
		return nil
	}
	return s.load(dirName(t.Digest), t.Digest, ref)
}

// load returns the complete root in a folder of the store, or nil. From then
// on nobody removes it while this process lives.
func (s *Store) load(name, digest, ref string) (root *Root) {
	if !filepath.IsLocal(name) || !s.hold(name) {
		return nil
	}
	defer func() {
		if root == nil {
			s.release(name)
		}
	}()
	dir := filepath.Join(s.dir, rootsFolder, name)
	file := filepath.Join(dir, "image.json")
	rec := readRecord(file)
	if rec == nil || rec.Digest != digest {
		return nil
	}
	rootDir := filepath.Join(dir, "root")
	// The ids of a sandbox are not the user's own: what has lost its mode (a
	// chmod -R on the home folder) is of no use to them.
	if info, err := os.Lstat(rootDir); err != nil || !info.IsDir() || info.Mode().Perm()&0o555 != 0o555 {
		return nil
	}
	// The modification time is when the image was last used. In a store that
	// another user shares with us it cannot be set, and need not be.
	now := time.Now()
	_ = os.Chtimes(file, now, now)
	return &Root{Dir: rootDir, Ref: ref, Digest: rec.Digest, Env: rec.Env, Python: rec.Python, Binds: rec.Binds, locks: s.locks}
}

// readRecord reads an image.json, and returns nil if it is of no use.
func readRecord(file string) *record {
	var rec record
	if err := readJSON(file, &rec); err != nil || rec.Format != format {
		return nil
	}
	return &rec
}

// remember notes which image a reference means.
func (s *Store) remember(ctx context.Context, r images.Reference, ref, digest string) error {
	unlock, err := s.locks.wait(ctx, "refs", unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock()
	note, had := tag{Ref: ref, Name: r.Name, Digest: digest}, tag{}
	if now := time.Now(); readJSON(s.refFile(r), &had) == nil && had == note && os.Chtimes(s.refFile(r), now, now) == nil {
		return nil // a layout is looked up anew in every run, and a write to the disk takes long
	}
	return writeJSON(s.refFile(r), note)
}

func (s *Store) refFile(r images.Reference) string {
	return filepath.Join(s.dir, "refs", s.refKey(r)+".json")
}

// refKey names a reference in the store. One tag means different images on
// different platforms, which may share a home directory.
func (s *Store) refKey(r images.Reference) string {
	sum := sha256.Sum256([]byte(s.puller.PlatformOrHost().String() + "\n" + r.Name))
	return hex.EncodeToString(sum[:])
}

// asked returns when the registry was last asked which image a reference means,
// the zero time if it never was.
func (s *Store) asked(r images.Reference) time.Time {
	info, err := os.Stat(s.refFile(r))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// recheckAfter is how long a tag is taken for what it last was.
const recheckAfter = time.Hour

// Due reports whether it is time to ask the registry again, in the background,
// which image a cached tag means, and notes that it is being done.
func (s *Store) Due(ref string) bool {
	r, err := images.Parse(ref)
	if err != nil || s.Policy != PullMissing || r.Kind != images.Registry || r.Pinned() {
		return false
	}
	asked := s.asked(r)
	if asked.IsZero() || time.Since(asked) < recheckAfter {
		return false
	}
	now := time.Now()
	return os.Chtimes(s.refFile(r), now, now) == nil
}

// dirName is the folder of an image: "sha256-…", as a colon in a path would be
// trouble for everything that lists paths.
func dirName(digest string) string { return strings.Replace(digest, ":", "-", 1) }

func readJSON(file string, v any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

// writeJSON replaces a file as a whole, and on the disk before it has its name.
// The caller has a lock that covers the file: the temporary name is always the
// same, so that what a killed process left is overwritten and not left for ever.
func writeJSON(file string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return replaceWhole(file, content)
}

// replaceWhole is writeJSON of bytes.
func replaceWhole(file string, content []byte) (err error) {
	f, err := os.OpenFile(newName(file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if rm := os.Remove(f.Name()); !errors.Is(rm, fs.ErrNotExist) {
				err = errors.Join(err, rm)
			}
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

const newPrefix = ".new-"

func newName(file string) string {
	return filepath.Join(filepath.Dir(file), newPrefix+filepath.Base(file))
}
