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
	"fmt"
	"os"
	"path/filepath"

	"github.com/runcell/runcell/images"
)

// Root is an unpacked image.
type Root struct {
	Dir    string // absolute, without symlinks in its path
	Ref    string // as it was asked for
	Digest string // of the manifest; "host" for the host's own system
	Env    []string
	Python string // absolute path inside of the interpreter
	Binds  []Bind
}

// Bind is a read-only bind mount that the root needs. Only the host's own
// system has some.
type Bind struct {
	Source string `json:"source"` // without symlinks
	Target string `json:"target"` // absolute path inside, where a mount point is ready
}

// Progress tells how far a pull is.
type Progress struct {
	Text        string
	Done, Total int64 // compressed bytes; Total is 0 if it is not known
}

// Store is a directory of unpacked images. Several processes may use one
// directory at once.
type Store struct {
	dir    string
	puller images.Puller

	// An image beyond these is refused.
	MaxBytes   int64 // unpacked, of all layers
	MaxEntries int   // files and directories of all layers
}

const (
	defaultMaxBytes   = 16 << 30
	defaultMaxEntries = 5_000_000
)

// Open opens the store in dir, which is made if it does not exist, and removes
// what interrupted pulls have left there.
func Open(dir string, p images.Puller) (*Store, error) {
	dir, err := prepare(dir)
	if err != nil {
		return nil, fmt.Errorf("opening image store: %w", err)
	}
	s := &Store{dir: dir, puller: p, MaxBytes: defaultMaxBytes, MaxEntries: defaultMaxEntries}
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
	for _, d := range []string{dir, filepath.Join(dir, "rootfs"), filepath.Join(dir, "refs"), filepath.Join(dir, "locks")} {
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
// cached. A tag of a registry that was pulled once needs no network again.
// Calls at the same time, also of other processes, share the work. Progress may
// be nil.
func (s *Store) Ensure(ctx context.Context, ref string, progress func(Progress)) (*Root, error) {
	r, err := images.Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Kind == images.Host {
		return s.host(ctx)
	}
	if root := s.cached(r, ref); root != nil {
		return root, nil
	}
	return s.pull(ctx, r, ref, false, progress)
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
	return s.pull(ctx, r, ref, true, progress)
}

// pull resolves a reference and unpacks its image if nobody has yet. The lock
// on the reference makes a second caller wait and find everything done.
func (s *Store) pull(ctx context.Context, r images.Reference, ref string, again bool, progress func(Progress)) (*Root, error) {
	unlock, err := s.lock(ctx, "ref-"+s.refKey(r))
	if err != nil {
		return nil, fmt.Errorf("waiting for another pull of %q: %w", ref, err)
	}
	defer unlock()
	if !again {
		if root := s.cached(r, ref); root != nil {
			return root, nil
		}
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
	root, err := s.ready(ctx, dirName(digest.String()), digest.String(), ref, func(dir string) (*record, error) {
		return s.unpackImage(ctx, dir, img, ref, progress)
	})
	if err != nil {
		return nil, fmt.Errorf("pulling image %q: %w", ref, err)
	}
	if err := s.remember(r, ref, digest.String()); err != nil {
		return nil, fmt.Errorf("noting image %q: %w", ref, err)
	}
	return root, nil
}

func report(progress func(Progress), p Progress) {
	if progress != nil {
		progress(p)
	}
}
