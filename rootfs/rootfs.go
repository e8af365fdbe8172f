// Package rootfs turns an image into a directory that a sandbox can use as its
// read-only root. It pulls and unpacks each image once and keeps the result,
// shared by all processes of the user.
//
// It promises that a root it returns is complete and is what the image's
// digests say: unpacking happens aside under a lock, every layer is verified to
// its end, and the directory gets its final name last. It does not promise to
// keep owners, devices, setuid bits or extended attributes; a sandbox without
// capabilities has no use for them.
//
// A store is a folder of
//
//	rootfs/  unpacked images, whose files are links to those of layers (imageDir)
//	layers/  their layers, each kept once (layerDir)
//	refs/    which image each reference meant when it was last pulled (tagDir)
//	locks/   lock files of the processes that share the store (cachedir.Cache)
package rootfs

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// Root is an unpacked image.
type Root struct {
	Dir    string // absolute, without symlinks in its path
	Ref    string // as requested
	Digest string // of the manifest; "host" for the host's own system
	Env    []string
	Python string // absolute path of the interpreter inside
	Binds  []Bind

	spare int             // files that may be added
	cache *cachedir.Cache // of its store
}

// Bind is a read-only bind mount that the root needs. Only the host's own
// system has some.
type Bind struct {
	Source string `json:"source"` // without symlinks
	Target string `json:"target"` // absolute path inside, where a mount point is ready
}

// Store is a directory of unpacked images. Several processes may use one
// directory at once.
type Store struct {
	opened time.Time
	puller images.Puller

	cache  *cachedir.Cache
	tags   tagDir
	layers layerDir
	images imageDir

	// Policy says when the registry is asked; PullMissing if empty.
	Policy PullPolicy
	// A larger image is refused.
	MaxBytes   int64 // unpacked, of all layers
	MaxEntries int   // files and directories of all layers, and files of bytecode
}

// How large an image may be in a store whose fields are not set.
const (
	DefaultMaxBytes   = 16 << 30
	DefaultMaxEntries = 2_000_000
)

// PullPolicy says when the registry of an image is asked which one its tag
// means.
type PullPolicy string

// The policies.
const (
	PullMissing PullPolicy = "missing" // if the image is not here, and else in the background, sometimes (RecheckDue)
	PullAlways  PullPolicy = "always"  // by each process, once
	PullNever   PullPolicy = "never"   // only by Pull
)

// ErrNotHere is in the chain of an error when an image would have to be pulled
// and the policy forbids it.
var ErrNotHere = errors.New("the image is not here, and pulling is switched off")

// Open opens the store in dir, creating it if needed, and removes what interrupted pulls
// left there.
func Open(dir string, p images.Puller) (*Store, error) {
	cache, err := cachedir.Open(dir, "rootfs", "layers", "refs")
	if err != nil {
		return nil, fmt.Errorf("opening image store: %w", err)
	}
	s := &Store{
		opened: time.Now(), puller: p,
		cache:  cache,
		tags:   tagDir{filepath.Join(cache.Dir, "refs"), cache, p.PlatformOrHost().String()},
		layers: layerDir{filepath.Join(cache.Dir, "layers"), cache},
		images: imageDir{filepath.Join(cache.Dir, "rootfs"), cache},
		Policy: PullMissing, MaxBytes: DefaultMaxBytes, MaxEntries: DefaultMaxEntries,
	}
	cache.Sweep("rootfs", "")
	cache.Sweep("layers", layerLock(""))
	return s, nil
}

// Close releases all roots: from now on any process may remove them.
func (s *Store) Close() error {
	s.cache.ReleaseAll()
	return nil
}

// The names of locks. A root is locked under the name of its folder while it is
// made or checked.
const (
	tagsLock  = "refs"  // while a tag is written
	pullsLock = "pulls" // shared by pulls, so that no process removes their layers before their image is there
)

func layerLock(name string) string { return "layer-" + name } // while a layer is made
func pullLock(key string) string   { return "ref-" + key }    // while a reference is pulled

// ErrInUse is in the chain of an error when an image cannot be removed because
// a process may be running code on it.
var ErrInUse = cachedir.ErrInUse
