package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Image is one image of the store.
type Image struct {
	Refs     []string  `json:"refs"` // none if its tag has moved to another image
	Digest   string    `json:"digest"`
	Platform string    `json:"platform"`
	Size     int64     `json:"size"`   // bytes on disk, of all its layers
	Shared   int64     `json:"shared"` // of these, bytes that other images have too
	Layers   []Layer   `json:"layers"` // lowest first
	Env      []string  `json:"env"`
	Python   string    `json:"python"`
	Dir      string    `json:"dir"` // its unpacked root
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
	InUse    bool      `json:"inUse"` // by any process, now
}

// list returns the images, most recently used first, with the references of each digest.
func (d imageDir) list(refs map[string][]string) ([]Image, error) {
	folders, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, f := range folders {
		dir := d.path(f.Name())
		info, err := os.Stat(recordFile(dir))
		if err != nil {
			continue
		}
		rec := readRecord(dir)
		if rec == nil || f.Name() != dirName(rec.Digest) {
			continue // unfinished, or the host's skeleton
		}
		all = append(all, Image{
			Refs: refs[rec.Digest], Digest: rec.Digest, Platform: rec.Platform, Layers: rec.Layers, Env: rec.Env, Python: rec.Python,
			Dir: filepath.Join(dir, "root"), Created: rec.Created, LastUsed: info.ModTime(), InUse: d.cache.InUse(f.Name()),
		})
	}
	countSizes(all)
	slices.SortStableFunc(all, func(a, b Image) int { return b.LastUsed.Compare(a.LastUsed) })
	return all, nil
}

// countSizes fills in the sizes. A layer that an image has twice is stored once.
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

// minDigest is the shortest prefix of a digest that may name an image.
const minDigest = 6

// byDigest returns the images whose digests begin with a prefix, with or without
// "sha256:".
func byDigest(all []Image, prefix string) (found []*Image) {
	hex := strings.TrimPrefix(prefix, "sha256:")
	for i := range all {
		if len(hex) >= minDigest && strings.HasPrefix(strings.TrimPrefix(all[i].Digest, "sha256:"), hex) {
			found = append(found, &all[i])
		}
	}
	return found
}
