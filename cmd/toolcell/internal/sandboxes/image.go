package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// retryDefault is the time for which the host's Python replaces the default image before the
// registry is asked again.
const retryDefault = 10 * time.Minute

// A Store keeps images unpacked, as rootfs.Store does.
type Store interface {
	Ensure(ctx context.Context, ref string, progress func(rootfs.Progress)) (*rootfs.Root, error)
	Cached(ctx context.Context, ref string) *rootfs.Root
	RecheckDue(ref string) bool
}

// Images finds the image that code runs on. Its exported fields are set before
// the first call and not changed after.
type Images struct {
	Store Store
	Ref   string // of the image
	Named bool   // the user named it: it is never replaced

	Runner string // folder of the runner, written again if it was removed
	Dirs   settings.Dirs
	Mounts []spec.Mount
	// Background works on an image that needs it. With nil, nothing does.
	Background Background

	mu            sync.Mutex
	last          run.Image // found at lastAt
	lastAt        time.Time
	fallbackNote  string // why the host's Python is used instead, if it is
	fallbackUntil time.Time
}

// Get prepares the image. If the default image cannot be reached, the host's
// own Python is used instead and a note says so; an image that the user named
// is never replaced.
func (s *Images) Get(ctx context.Context, progress func(done, total int64, text string)) (run.Image, error) {
	s.mu.Lock()
	last, at := s.last, s.lastAt
	s.mu.Unlock()
	if time.Since(at) < lookAgain && exists(last.Root.Dir) && exists(s.Runner) {
		return last, nil
	}
	image, err := s.prepare(ctx, progress)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last, s.lastAt = image, time.Now()
	}
	return image, err
}

// lookAgain is the time for which an image is used without another check: short runs come one
// after another, and a check takes as long as some of them.
const lookAgain = time.Second

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// prepare prepares the image, as Get describes.
func (s *Images) prepare(ctx context.Context, progress func(done, total int64, text string)) (run.Image, error) {
	settings.LeaveRemovedFolder()
	if _, err := os.Stat(filepath.Join(s.Runner, filepath.Base(runner.Program))); err != nil {
		if _, err := runner.Write(filepath.Dir(s.Runner)); err != nil {
			return run.Image{}, s.Dirs.Explain(err)
		}
	}
	if note := s.fallback(); note != "" {
		return s.ensure(ctx, "host", note, progress)
	}
	image, err := s.ensure(ctx, s.Ref, "", progress)
	// On a full disk the user must know: it would not be the image that they meant.
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
	if err == nil || s.Named || full || ctx.Err() != nil {
		return image, err
	}
	why := strings.TrimPrefix(err.Error(), fmt.Sprintf("reading image %q: ", s.Ref))
	note := fallbackWhy + "the default image could not be pulled: " + why
	image, hostErr := s.ensure(ctx, "host", note, progress)
	if hostErr != nil {
		return run.Image{}, fmt.Errorf("%w; and the host's own Python cannot stand in: %w", err, hostErr)
	}
	s.mu.Lock()
	s.fallbackNote, s.fallbackUntil = note, time.Now().Add(retryDefault)
	s.mu.Unlock()
	return image, nil
}

// Cached returns the image if it is in the store already.
func (s *Images) Cached(ctx context.Context) (run.Image, bool) {
	root := s.Store.Cached(ctx, s.Ref)
	if root == nil || settings.CheckRoom(root, s.Mounts) != nil { // the first run reports why
		return run.Image{}, false
	}
	return s.image(ctx, s.Ref, root), true
}

// fallback returns the note about the host's Python while that replaces the image, "" if the
// image should be tried.
func (s *Images) fallback() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().After(s.fallbackUntil) {
		return ""
	}
	return s.fallbackNote
}

func (s *Images) ensure(ctx context.Context, ref, note string, progress func(done, total int64, text string)) (run.Image, error) {
	root, err := s.Store.Ensure(ctx, ref, func(p rootfs.Progress) {
		if progress != nil {
			progress(p.Done, p.Total, p.Text)
		}
	})
	if err != nil {
		return run.Image{}, s.Dirs.Explain(err)
	}
	if err := settings.CheckRoom(root, s.Mounts); err != nil {
		return run.Image{}, s.Dirs.Explain(err)
	}
	if ask := s.Store.RecheckDue(ref); s.Background != nil && (ask || root.NeedsBytecode(ctx) || root.NeedsProgramBytecode(s.Runner)) {
		s.Background.Refresh(ref, ask)
	}
	image := s.image(ctx, ref, root)
	if note != "" {
		image.Notes = append(image.Notes, note)
	}
	return image, nil
}

func (s *Images) image(ctx context.Context, ref string, root *rootfs.Root) run.Image {
	return run.Image{
		Name: ref, Digest: root.Digest, Root: SandboxRoot(root), Python: root.Python, Runner: root.ProgramBytecode(s.Runner), Env: root.Env,
		Compiling: root.NeedsBytecode(ctx),
	}
}

// SandboxRoot returns an image's root in the form that the runtime expects.
func SandboxRoot(root *rootfs.Root) spec.Root {
	r := spec.Root{Dir: root.Dir}
	for _, b := range root.Binds {
		r.Binds = append(r.Binds, spec.Bind(b))
	}
	return r
}

// fallbackWhy begins the note about the host's own Python where that stands in.
const fallbackWhy = "this ran on the host's own Python, since "

// Greeting says which Python code will run on, and why it is not the default image's.
// It pulls the image if need be.
func (s *Images) Greeting(ctx context.Context, progress func(done, total int64, text string)) string {
	image, err := s.Get(ctx, progress)
	if err != nil {
		return "Python in a sandbox of " + s.Ref // the first run reports why not
	}
	python := "Python"
	if v := version(image); v != "" {
		python += " " + v
	}
	for _, note := range image.Notes {
		if why, ok := strings.CutPrefix(note, fallbackWhy); ok {
			return python + " of this host, in a sandbox, since " + why
		}
	}
	if image.Name == "host" {
		return python + " of this host, in a sandbox"
	}
	return python + " in a sandbox of " + image.Name
}

// pythonOnHost returns where the host has an image's Python.
func pythonOnHost(image run.Image) string {
	for _, b := range image.Root.Binds {
		if rest, below := strings.CutPrefix(image.Python, b.Target+"/"); below {
			return filepath.Join(b.Source, rest)
		}
	}
	return image.Root.Dir + image.Python
}

var versioned = regexp.MustCompile(`^python(\d+\.\d+)t?$`)

// version returns the version of an image's Python as the name of its program has it,
// "" if it has none: python3 is a link to python3.14.
func version(image run.Image) string {
	at := pythonOnHost(image)
	name := filepath.Base(at)
	if to, err := os.Readlink(at); err == nil {
		name = filepath.Base(to)
	}
	if m := versioned.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}
