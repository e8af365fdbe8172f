package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/images"
)

// Image is one image of the store.
type Image struct {
	Refs     []string  `json:"refs"` // none if its tag means another image now
	Digest   string    `json:"digest"`
	Platform string    `json:"platform"`
	Size     int64     `json:"size"`   // bytes on disk, of all its layers
	Shared   int64     `json:"shared"` // of these, what other images have too
	Layers   []Layer   `json:"layers"` // lowest first
	Env      []string  `json:"env"`
	Python   string    `json:"python"`
	Dir      string    `json:"dir"` // its unpacked root
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
	InUse    bool      `json:"inUse"` // by any process, now
}

// List returns the images of the store, those used last first.
func (s *Store) List() ([]Image, error) {
	all, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	return all, nil
}

func (s *Store) list() ([]Image, error) {
	refs, err := s.references()
	if err != nil {
		return nil, err
	}
	folders, err := os.ReadDir(filepath.Join(s.dir, rootsFolder))
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, f := range folders {
		dir := filepath.Join(s.dir, rootsFolder, f.Name())
		file := filepath.Join(dir, "image.json")
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		rec := readRecord(file)
		if rec == nil || f.Name() != dirName(rec.Digest) {
			continue // unfinished, or the host's skeleton
		}
		all = append(all, Image{
			Refs: refs[rec.Digest], Digest: rec.Digest, Platform: rec.Platform, Layers: rec.Layers, Env: rec.Env, Python: rec.Python,
			Dir: filepath.Join(dir, "root"), Created: rec.Created, LastUsed: info.ModTime(), InUse: s.inUse(f.Name()),
		})
	}
	countSizes(all)
	slices.SortStableFunc(all, func(a, b Image) int { return b.LastUsed.Compare(a.LastUsed) })
	return all, nil
}

// countSizes fills in the sizes. A layer that an image has twice is there once.
func countSizes(all []Image) {
	owners := map[string]int{}
	each := func(i *Image, do func(Layer)) {
		seen := map[string]bool{}
		for _, l := range i.Layers {
			if !seen[l.DiffID] {
				seen[l.DiffID] = true
				do(l)
			}
		}
	}
	for i := range all {
		each(&all[i], func(l Layer) { owners[l.DiffID]++ })
	}
	for i := range all {
		each(&all[i], func(l Layer) {
			all[i].Size += l.Size
			if owners[l.DiffID] > 1 {
				all[i].Shared += l.Size
			}
		})
	}
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
		if !strings.HasPrefix(f.Name(), newPrefix) && readJSON(filepath.Join(s.dir, "refs", f.Name()), &t) == nil {
			refs[t.Digest] = append(refs[t.Digest], t.Ref)
		}
	}
	return refs, nil
}

// minDigest is how much of a digest must be given to mean an image.
const minDigest = 6

// Find returns the image of the store that a user means by a reference, or by
// a digest or its beginning, with or without "sha256:".
func (s *Store) Find(name string) (*Image, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	r, parseErr := images.Parse(name)
	if parseErr == nil {
		var t tag
		if readJSON(s.refFile(r), &t) == nil && t.Name == r.Name {
			for i := range all {
				if all[i].Digest == t.Digest {
					return &all[i], nil
				}
			}
		}
	}
	var found []*Image
	for i := range all {
		hex := strings.TrimPrefix(name, "sha256:")
		if len(hex) >= minDigest && strings.HasPrefix(strings.TrimPrefix(all[i].Digest, "sha256:"), hex) {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("there is no image %q here; `toolcell images list` shows what is", name)
	}
	return nil, fmt.Errorf("%d images begin with %q; give more of the digest", len(found), name)
}
