// Package rootfs turns an image into a directory that a sandbox can use as its
// read-only root. It pulls and unpacks each image once and keeps the result,
// shared by all processes of the user.
//
// It promises that a root it returns is complete and is what the image's
// digests say: unpacking happens aside under a lock, every layer is verified to
// its end, and the directory gets its final name last. It does not promise to
// keep owners, devices, setuid bits or extended attributes; a sandbox without
// capabilities has no use for them.
package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/images"
)

// Root is an unpacked image.
type Root struct {
	Dir    string // absolute, without symlinks in its path
	Ref    string // as it was asked for
	Digest string // of the manifest; "host" for the host's own system
	Env    []string
	Python string // absolute path inside of the interpreter
	Binds  []Bind

	locks lockDir // of its store
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
	dir    string
	locks  lockDir
	puller images.Puller
	opened time.Time

	mu   sync.Mutex
	held map[string]func() // roots that this process uses, with what lets go of them

	// Policy says when the registry is asked; PullMissing if empty.
	Policy PullPolicy
	// An image beyond these is refused.
	MaxBytes   int64 // unpacked, of all layers
	MaxEntries int   // files and directories of all layers
}

// How large an image may be unless a Store is told otherwise.
const (
	DefaultMaxBytes   = 16 << 30
	DefaultMaxEntries = 2_000_000
)

// PullPolicy says when the registry of an image is asked which one its tag
// means.
type PullPolicy string

// The policies.
const (
	PullMissing PullPolicy = "missing" // if the image is not here, and else in the background, sometimes (Due)
	PullAlways  PullPolicy = "always"  // by each process, once
	PullNever   PullPolicy = "never"   // only by Pull
)

// ErrNotHere is in the chain of an error when an image would have to be pulled
// and the policy forbids it.
var ErrNotHere = errors.New("the image is not here, and pulling is switched off")

// Open opens the store in dir, which is made if it does not exist, and removes
// what interrupted pulls have left there.
func Open(dir string, p images.Puller) (*Store, error) {
	dir, err := prepare(dir)
	if err != nil {
		return nil, fmt.Errorf("opening image store: %w", err)
	}
	s := &Store{
		dir: dir, locks: lockDir(filepath.Join(dir, "locks")), puller: p, opened: time.Now(), held: map[string]func(){},
		Policy: PullMissing, MaxBytes: DefaultMaxBytes, MaxEntries: DefaultMaxEntries,
	}
	s.sweep()
	return s, nil
}

// prepare makes the folders of a store and returns its path without symlinks.
func prepare(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := makeFolders(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func makeFolders(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, rootsFolder), filepath.Join(dir, layersFolder), filepath.Join(dir, "refs"), filepath.Join(dir, "locks")} {
		if err := makeSearchable(d); err != nil {
			return err
		}
	}
	return nil
}

// makeSearchable makes a directory that the ids of a sandbox, which are not the
// user's own, can pass through whatever the umask is.
func makeSearchable(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// Ensure returns the root for ref, pulling and unpacking it if it is not
// cached. A tag of a registry that was pulled once needs no network again,
// unless the policy says so. Calls at the same time, also of other processes,
// share the work. Progress may be nil.
func (s *Store) Ensure(ctx context.Context, ref string, progress func(Progress)) (*Root, error) {
	r, err := images.Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Kind == images.Host {
		return s.host(ctx)
	}
	if root := s.current(r, ref); root != nil {
		return root, nil
	}
	if s.Policy == PullNever && !r.Local() {
		return nil, fmt.Errorf("reading image %q: %w; fetch it with: toolcell images pull %s", ref, ErrNotHere, ref)
	}
	return s.pull(ctx, r, ref, s.current, progress)
}

// Cached returns what Ensure would without asking anybody, or nil.
func (s *Store) Cached(ctx context.Context, ref string) *Root {
	r, err := images.Parse(ref)
	if err != nil {
		return nil
	}
	if r.Kind == images.Host {
		root, err := s.host(ctx)
		if err != nil {
			return nil
		}
		return root
	}
	return s.current(r, ref)
}

// current returns the cached root of a reference if the policy allows to use
// it unasked, or nil.
func (s *Store) current(r images.Reference, ref string) *Root {
	if s.Policy == PullAlways && !r.Pinned() && s.asked(r).Before(s.opened) {
		return nil
	}
	return s.cached(r, ref)
}

// Pull does what Ensure does, but asks the registry again which image a tag
// means now.
func (s *Store) Pull(ctx context.Context, ref string, progress func(Progress)) (*Root, error) {
	r, err := images.Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Kind == images.Host {
		return s.host(ctx)
	}
	return s.pull(ctx, r, ref, func(images.Reference, string) *Root { return nil }, progress)
}

// pull resolves a reference and unpacks its image if nobody has yet. The lock
// on the reference makes a second caller wait and find everything done: known
// says what it may take for that.
func (s *Store) pull(ctx context.Context, r images.Reference, ref string, known func(images.Reference, string) *Root, progress func(Progress)) (*Root, error) {
	name := "ref-" + s.refKey(r)
	unlock, err := s.locks.try(name, unix.LOCK_EX)
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			report(progress, Progress{Text: "waiting for another process that pulls " + ref})
		}
		unlock, err = s.locks.wait(ctx, name, unix.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for another pull of %q: %w", ref, err)
	}
	defer unlock()
	if root := known(r, ref); root != nil {
		return root, nil
	}
	report(progress, Progress{Text: "looking up " + ref})
	img, err := s.puller.Image(ctx, ref)
	if err != nil {
		return nil, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, fmt.Errorf("reading image %q: %w", ref, err)
	}
	root, err := s.unpacked(ctx, img, digest.String(), ref, progress)
	if err != nil {
		return nil, fmt.Errorf("pulling image %q: %w", ref, err)
	}
	if err := s.remember(ctx, r, ref, digest.String()); err != nil {
		return nil, fmt.Errorf("noting image %q: %w", ref, err)
	}
	return root, nil
}

// unpacked returns the root of an image. If it fails for good, such as on a full
// disk, nothing stays of it; after an interruption its complete layers do, so
// that the next pull has less to do.
func (s *Store) unpacked(ctx context.Context, img v1.Image, digest, ref string, progress func(Progress)) (*Root, error) {
	pulling, err := s.locks.wait(ctx, pullsLock, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	root, err := s.ready(ctx, dirName(digest), digest, ref, func(dir string) (*record, error) {
		return s.unpackImage(ctx, dir, img, ref, progress)
	})
	pulling()
	if err != nil && ctx.Err() == nil && !errors.Is(err, images.ErrUnavailable) {
		_, collectErr := s.collect()
		err = errors.Join(err, collectErr)
	}
	return root, err
}
