package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runcell/runcell/images"
)

// format is the version of what lies in the store. Roots of another one are
// unpacked anew.
const format = 1

// maxRecord bounds the small files of the store, which other programs of the
// user could have damaged.
const maxRecord = 4 << 20

// record is image.json beside an unpacked root. Its presence under the final
// name is what says that the root is complete.
type record struct {
	Format  int       `json:"format"`
	Ref     string    `json:"ref"` // of the first pull
	Digest  string    `json:"digest"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
	Env     []string  `json:"env,omitempty"`
	Python  string    `json:"python"`
	Binds   []Bind    `json:"binds,omitempty"`
}

// tag is refs/….json: which image a reference meant when it was last pulled.
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

// load returns the complete root in a folder of the store, or nil.
func (s *Store) load(name, digest, ref string) *Root {
	if !filepath.IsLocal(name) {
		return nil
	}
	dir := filepath.Join(s.dir, "rootfs", name)
	file := filepath.Join(dir, "image.json")
	var rec record
	if err := readJSON(file, &rec); err != nil || rec.Format != format || rec.Digest != digest {
		return nil
	}
	root := filepath.Join(dir, "root")
	// The ids of a sandbox are not the user's own: what has lost its mode (a
	// chmod -R on the home folder) is of no use to them.
	if info, err := os.Lstat(root); err != nil || !info.IsDir() || info.Mode().Perm()&0o555 != 0o555 {
		return nil
	}
	// The modification time is when the image was last used. In a store that
	// another user shares with us it cannot be set, and need not be.
	now := time.Now()
	_ = os.Chtimes(file, now, now)
	return &Root{Dir: root, Ref: ref, Digest: rec.Digest, Env: rec.Env, Python: rec.Python, Binds: rec.Binds}
}

// remember notes which image a reference means.
func (s *Store) remember(r images.Reference, ref, digest string) error {
	return writeJSON(s.refFile(r), tag{Ref: ref, Name: r.Name, Digest: digest})
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

// dirName is the folder of an image: "sha256-…", as a colon in a path would be
// trouble for everything that lists paths.
func dirName(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// Entry is one image of the store.
type Entry struct {
	Ref      string    `json:"ref"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"` // unpacked bytes
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
}

// List returns the images of the store, those used last first. An image with
// several references is there once for each.
func (s *Store) List() ([]Entry, error) {
	refs, err := s.references()
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	folders, err := os.ReadDir(filepath.Join(s.dir, "rootfs"))
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	var entries []Entry
	for _, f := range folders {
		file := filepath.Join(s.dir, "rootfs", f.Name(), "image.json")
		var rec record
		info, err := os.Stat(file)
		if err != nil || readJSON(file, &rec) != nil || rec.Format != format || f.Name() != dirName(rec.Digest) {
			continue // unfinished, or the host's skeleton
		}
		names := refs[rec.Digest]
		if len(names) == 0 {
			names = []string{rec.Ref}
		}
		for _, ref := range names {
			entries = append(entries, Entry{ref, rec.Digest, rec.Size, rec.Created, info.ModTime()})
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.LastUsed.Compare(a.LastUsed) })
	return entries, nil
}

// references returns the names that each digest has.
func (s *Store) references() (map[string][]string, error) {
	files, err := os.ReadDir(filepath.Join(s.dir, "refs"))
	if err != nil {
		return nil, err
	}
	refs := map[string][]string{}
	for _, f := range files {
		var t tag
		if readJSON(filepath.Join(s.dir, "refs", f.Name()), &t) == nil {
			refs[t.Digest] = append(refs[t.Digest], t.Ref)
		}
	}
	return refs, nil
}

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
func writeJSON(file string, v any) (err error) {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-")
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
