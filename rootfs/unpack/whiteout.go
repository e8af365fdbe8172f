package unpack

import (
	"fmt"
	"hash/maphash"
	"path"
	"strings"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// Whiteouts are the empty files by which a layer deletes what is below it (OCI
// image-spec, layer.md).
const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..opq" // after the prefix
	metaPrefix     = ".wh."     // names with two prefixes were AUFS's own
)

// applyWhiteout hides a name, or everything, that lower layers have in dir. "Files
// that are present in the same layer as a whiteout file can only be hidden by
// whiteout files in subsequent layers."
func (m *Merger) applyWhiteout(dir, hidden string) error {
	_, real, err := m.others.Find(dir)
	if rootdir.IsMissing(err) {
		return nil // there is nothing to hide
	}
	if err != nil {
		return err
	}
	switch {
	case hidden == opaqueMarker:
		return m.hideChildren(real)
	case strings.HasPrefix(hidden, metaPrefix):
		return nil
	case hidden == "" || hidden == "." || hidden == "..":
		return fmt.Errorf("whiteout of %q", hidden)
	}
	return m.hide(path.Join(real, hidden))
}

// hide removes a path; if this layer has it too, it removes only what lower layers have in
// it.
func (m *Merger) hide(full string) error {
	if m.paths.has(full) {
		return m.hideChildren(full)
	}
	return m.remove(full)
}

// hideChildren hides everything in a directory, once per layer: a hostile one could make us
// walk the same tree for hours.
func (m *Merger) hideChildren(dir string) error {
	if m.paths.markOpaque(dir) {
		return nil
	}
	info, err := m.root.Lstat(dir)
	if rootdir.IsMissing(err) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := rootdir.ReadDir(m.root, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.hide(path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// layerPaths is the set of paths of one layer. It stores hashes, since the names of a hostile
// layer could fill the memory; with the random seed, no image can make two names collide.
type layerPaths struct {
	seed   maphash.Seed
	paths  map[uint64]struct{}
	opaque map[uint64]struct{} // directories with nothing of lower layers
}

func newLayerPaths() *layerPaths {
	return &layerPaths{
		seed:   maphash.MakeSeed(),
		paths:  map[uint64]struct{}{},
		opaque: map[uint64]struct{}{},
	}
}

// add adds a path and the directories above it.
func (l *layerPaths) add(full string) {
	for ; full != "."; full = path.Dir(full) {
		h := maphash.String(l.seed, full)
		if _, ok := l.paths[h]; ok {
			return
		}
		l.paths[h] = struct{}{}
	}
}

func (l *layerPaths) has(full string) bool {
	_, ok := l.paths[maphash.String(l.seed, full)]
	return ok
}

// markOpaque marks a directory as opaque, and reports whether it already was.
func (l *layerPaths) markOpaque(dir string) bool {
	h := maphash.String(l.seed, dir)
	_, was := l.opaque[h]
	l.opaque[h] = struct{}{}
	return was
}
