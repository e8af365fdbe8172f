// Package image finds, and pulls where it has to, the image that code runs on.
// The host's own Python stands in for a default image that is out of reach; an
// image that the user named is never replaced.
package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/rootfs"
)

// retryDefault is how long the host's Python stands in for the default image
// before the registry is asked again.
const retryDefault = 10 * time.Minute

// A Source finds the image that code runs on. Its exported fields are set before
// the first call and not changed after.
type Source struct {
	Store *rootfs.Store
	Ref   string
	Named bool

	Runner  string // written again if it was removed
	Dirs    settings.Dirs
	Mounts  []oci.Mount
	Refresh func(ref string, ask bool)

	mu      sync.Mutex
	last    bridge.Image // found at lastAt
	lastAt  time.Time
	instead string    // why the host's Python stands in, if it does
	until   time.Time // until then
}

// Get makes the image ready. The default image may be out of reach, and then
// the host's own Python serves, which is said; an image that the user named
// is never replaced by another.
func (i *Source) Get(ctx context.Context, progress func(done, total int64, text string)) (bridge.Image, error) {
	i.mu.Lock()
	last, at := i.last, i.lastAt
	i.mu.Unlock()
	if time.Since(at) < lookAgain && there(last.Root.Dir) && there(i.Runner) {
		return last, nil
	}
	image, err := i.find(ctx, progress)
	if err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.last, i.lastAt = image, time.Now()
	}
	return image, err
}

// lookAgain is how long what was found is not looked at again: many short runs
// come one after another, and to look takes as long as some of them.
const lookAgain = time.Second

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// find makes the image ready, as get says.
func (i *Source) find(ctx context.Context, progress func(done, total int64, text string)) (bridge.Image, error) {
	settings.LeaveRemovedFolder()
	if _, err := os.Stat(filepath.Join(i.Runner, filepath.Base(runner.Program))); err != nil {
		if _, err := runner.Write(filepath.Dir(i.Runner)); err != nil {
			return bridge.Image{}, i.Dirs.Explain(err)
		}
	}
	if note := i.standIn(); note != "" {
		return i.ensure(ctx, "host", note, progress)
	}
	image, err := i.ensure(ctx, i.Ref, "", progress)
	if err == nil || i.Named || ctx.Err() != nil {
		return image, err
	}
	note := fmt.Sprintf("this ran on the host's own Python, since the default image could not be had: %v", err)
	image, hostErr := i.ensure(ctx, "host", note, progress)
	if hostErr != nil {
		return bridge.Image{}, fmt.Errorf("%w; and the host's own Python cannot stand in: %w", err, hostErr)
	}
	i.mu.Lock()
	i.instead, i.until = note, time.Now().Add(retryDefault)
	i.mu.Unlock()
	return image, nil
}

// Cached gives the image if it is there already.
func (i *Source) Cached(ctx context.Context) (bridge.Image, bool) {
	root := i.Store.Cached(ctx, i.Ref)
	if root == nil || settings.MakeRoom(root, i.Mounts) != nil { // the first run says why
		return bridge.Image{}, false
	}
	return i.image(i.Ref, root), true
}

func (i *Source) standIn() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Now().After(i.until) {
		return ""
	}
	return i.instead
}

func (i *Source) ensure(ctx context.Context, ref, note string, progress func(done, total int64, text string)) (bridge.Image, error) {
	root, err := i.Store.Ensure(ctx, ref, func(p rootfs.Progress) {
		if progress != nil {
			progress(p.Done, p.Total, p.Text)
		}
	})
	if err != nil {
		return bridge.Image{}, i.Dirs.Explain(err)
	}
	if err := settings.MakeRoom(root, i.Mounts); err != nil {
		return bridge.Image{}, i.Dirs.Explain(err)
	}
	if ask := i.Store.Due(ref); ask || root.NeedsBytecode() || root.NeedsProgramBytecode(i.Runner) {
		i.Refresh(ref, ask)
	}
	image := i.image(ref, root)
	if note != "" {
		image.Notes = append(image.Notes, note)
	}
	return image, nil
}

func (i *Source) image(ref string, root *rootfs.Root) bridge.Image {
	return bridge.Image{
		Name: ref, Root: SandboxRoot(root), Python: root.Python, Runner: root.ProgramBytecode(i.Runner), Env: root.Env,
	}
}

// SandboxRoot returns an image's root as the runtime takes it.
func SandboxRoot(root *rootfs.Root) oci.Root {
	r := oci.Root{Dir: root.Dir}
	for _, b := range root.Binds {
		r.Binds = append(r.Binds, oci.Bind(b))
	}
	return r
}
