package rootfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/unpack"
)

// Ensure returns the root for ref, pulling and unpacking the image if it is not cached. A
// tag that was pulled once needs no network again, unless the policy says so. Concurrent
// calls, also from other processes, share the work. Progress may be nil.
func (s *Store) Ensure(ctx context.Context, ref string, progress func(Progress)) (*Root, error) {
	r, err := images.Parse(ref)
	if err == nil {
		err = s.cache.CheckOwn() // no other user can change what code is to run on
	}
	if err != nil {
		return nil, err
	}
	if r.Kind == images.Host {
		return hostRoot(ctx, s.images)
	}
	if root := s.cached(r, ref); root != nil {
		return root, nil
	}
	if s.Policy == PullNever && !r.Local() {
		return nil, fmt.Errorf("reading image %q: %w; fetch it with: toolcell images pull %s", ref, ErrNotHere, ref)
	}
	return s.pull(ctx, r, ref, false, progress)
}

// Cached returns the root that Ensure would return without any network, or nil.
func (s *Store) Cached(ctx context.Context, ref string) *Root {
	r, err := images.Parse(ref)
	if err != nil || s.cache.CheckOwn() != nil {
		return nil
	}
	if r.Kind == images.Host {
		root, _ := hostRoot(ctx, s.images) // Ensure reports the error
		return root
	}
	return s.cached(r, ref)
}

// cached returns the root that a reference meant at its last pull, or nil if the policy
// forbids its use. It returns nil for an archive that has changed since, and for every
// folder: there is no quick way to detect changes in one.
func (s *Store) cached(r images.Reference, ref string) *Root {
	t := s.tags.read(r)
	switch {
	case t.Digest == "":
		return nil
	case r.Local() && (t.Stamp == "" || t.Stamp != r.Stamp()):
		return nil
	case s.Policy == PullAlways && !r.Local() && !r.Pinned() && s.tags.lastAsked(r).Before(s.opened):
		return nil
	}
	return s.images.load(dirName(t.Digest), t.Digest, ref)
}

// recheckAfter is how long the last meaning of a tag is trusted.
const recheckAfter = time.Hour

// RecheckDue reports whether it is time to ask the registry again, in the background,
// which image a cached tag means. If so, it records the time.
func (s *Store) RecheckDue(ref string) bool {
	r, err := images.Parse(ref)
	if err != nil || s.Policy != PullMissing || r.Kind != images.Registry || r.Pinned() {
		return false
	}
	asked := s.tags.lastAsked(r)
	if asked.IsZero() || time.Since(asked) < recheckAfter {
		return false
	}
	return s.tags.recordAsked(r)
}

// Pull is like Ensure, but always asks the registry which image a tag means.
func (s *Store) Pull(ctx context.Context, ref string, progress func(Progress)) (*Root, error) {
	r, err := images.Parse(ref)
	if err != nil {
		return nil, err
	}
	if r.Kind == images.Host {
		return hostRoot(ctx, s.images)
	}
	return s.pull(ctx, r, ref, true, progress)
}

// pull resolves a reference and unpacks its image if it is not in the store. The lock on the
// reference makes a second caller wait for the first; unless anew, it then returns the
// same root.
func (s *Store) pull(ctx context.Context, r images.Reference, ref string, anew bool, progress func(Progress)) (*Root, error) {
	unlock, err := s.lockReference(ctx, r, ref, progress)
	if err != nil {
		return nil, fmt.Errorf("waiting for another pull of %q: %w", ref, err)
	}
	defer unlock()
	if !anew {
		if root := s.cached(r, ref); root != nil {
			return root, nil
		}
	}
	report(progress, Progress{Text: "looking up " + ref})
	release, err := memory.Documents(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	stamp := r.Stamp()
	img, err := s.puller.Image(ctx, ref)
	if err != nil {
		return nil, err
	}
	root, err := s.ensureUnpacked(ctx, img, ref, progress)
	if err != nil {
		return nil, fmt.Errorf("pulling image %q: %w", ref, err)
	}
	if err := s.tags.record(ctx, r, ref, img.Digest, stamp); err != nil {
		return nil, fmt.Errorf("noting image %q: %w", ref, err)
	}
	return root, nil
}

func (s *Store) lockReference(ctx context.Context, r images.Reference, ref string, progress func(Progress)) (unlock func(), err error) {
	name := pullLock(s.tags.key(r))
	unlock, err = s.cache.Try(name, state.Exclusive)
	if err == nil {
		return unlock, nil
	}
	if errors.Is(err, state.ErrLocked) {
		report(progress, Progress{Text: "waiting for another process that pulls " + ref})
	}
	return s.cache.Wait(ctx, name, state.Exclusive)
}

// ensureUnpacked returns the root of an image. After a permanent failure, such as a full
// disk, it removes everything; after an interruption it keeps complete layers, so that the
// next pull has less to do.
func (s *Store) ensureUnpacked(ctx context.Context, img *images.Image, ref string, progress func(Progress)) (*Root, error) {
	pulling, err := s.cache.Wait(ctx, pullsLock, state.Shared)
	if err != nil {
		return nil, err
	}
	root, err := s.images.ensure(ctx, dirName(img.Digest), img.Digest, ref, func(dir string) (*record, error) {
		return unpackImage(ctx, dir, img, s.layers, s.budget(), newMeter(img, ref, progress))
	})
	pulling()
	if err != nil && ctx.Err() == nil && !errors.Is(err, images.ErrUnavailable) {
		_, removeErr := s.removeUnusedLayers()
		err = errors.Join(err, removeErr)
	}
	return root, err
}

func (s *Store) budget() *unpack.Budget { return unpack.NewBudget(s.MaxBytes, s.MaxEntries) }

// A Lookup has what is known of an image before its layers are fetched.
type Lookup struct {
	Digest   string
	Platform string // that it was built for; "" if it does not say
	Size     int64  // bytes of its layers, compressed
	Here     bool   // unpacked in the store
}

// Lookup reads the manifest and configuration of an image from its source, but no layer.
// It stores nothing, and fails for the image "host".
func (s *Store) Lookup(ctx context.Context, ref string) (Lookup, error) {
	release, err := memory.Documents(ctx)
	if err != nil {
		return Lookup{}, err
	}
	defer release()
	img, err := s.puller.Image(ctx, ref)
	if err != nil {
		return Lookup{}, err
	}
	found := Lookup{Digest: img.Digest, Platform: img.Platform}
	for _, l := range img.Layers {
		found.Size += l.Size
	}
	if rec := readRecord(s.images.path(dirName(found.Digest))); rec != nil {
		found.Here = rec.Digest == found.Digest
	}
	return found, nil
}
