package rootfs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// A tagDir has a file for each reference that was pulled, with the image it meant.
type tagDir struct {
	dir      string
	cache    *cachedir.Cache
	platform string // a tag means different images on different platforms, which may share a home directory
}

// tag is the content of such a file. Its modification time is when the registry was last
// asked.
type tag struct {
	Ref    string `json:"ref"`  // as the user wrote it
	Name   string `json:"name"` // normalized
	Digest string `json:"digest"`
	Stamp  string `json:"stamp,omitempty"` // of the archive (images.Reference.Stamp)
}

func (d tagDir) file(r images.Reference) string { return filepath.Join(d.dir, d.key(r)+".json") }

// key returns the name of a reference in the store.
func (d tagDir) key(r images.Reference) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(d.platform+"\n"+r.Name)))
}

// read returns what is recorded about a reference, the zero value if nothing is.
func (d tagDir) read(r images.Reference) tag {
	var t tag
	if err := cachedir.ReadJSON(d.file(r), &t); err != nil || t.Name != r.Name {
		return tag{}
	}
	return t
}

// record records which image a reference means now, with the stamp from before it was
// read.
func (d tagDir) record(ctx context.Context, r images.Reference, ref, digest, stamp string) error {
	unlock, err := d.cache.Wait(ctx, tagsLock, state.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	now, before := tag{Ref: ref, Name: r.Name, Digest: digest, Stamp: stamp}, tag{}
	if cachedir.ReadJSON(d.file(r), &before) == nil && before == now && d.recordAsked(r) {
		return nil // a layout is looked up again in every run, and a write to disk takes long
	}
	return cachedir.WriteJSON(d.file(r), now)
}

// lastAsked returns when the registry was last asked which image a reference means, the
// zero time if never.
func (d tagDir) lastAsked(r images.Reference) time.Time {
	info, err := os.Stat(d.file(r))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// recordAsked records that the registry is asked now, and reports whether that succeeded.
func (d tagDir) recordAsked(r images.Reference) bool {
	now := time.Now()
	return os.Chtimes(d.file(r), now, now) == nil
}

// all returns the tags by their files, unfinished ones too.
func (d tagDir) all() (map[string]tag, error) {
	files, err := os.ReadDir(d.dir)
	tags := map[string]tag{}
	for _, f := range files {
		var t tag
		if file := filepath.Join(d.dir, f.Name()); cachedir.ReadJSON(file, &t) == nil {
			tags[file] = t
		}
	}
	return tags, err
}

// refs returns the references of each digest.
func (d tagDir) refs() (map[string][]string, error) {
	tags, err := d.all()
	refs := map[string][]string{}
	for _, file := range slices.Sorted(maps.Keys(tags)) {
		if t := tags[file]; filepath.Ext(file) == ".json" {
			refs[t.Digest] = append(refs[t.Digest], t.Ref)
		}
	}
	return refs, err
}

// removeAll removes all references of an image.
func (d tagDir) removeAll(digest string) error {
	tags, err := d.all()
	for file, t := range tags {
		if t.Digest == digest {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}
