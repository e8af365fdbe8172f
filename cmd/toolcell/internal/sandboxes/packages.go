package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// Packages gets packages for runs.
type Packages struct {
	Store     *packages.Store
	Sandboxes run.Sandboxes
	Dirs      settings.Dirs
	Limits    spec.Limits // of the resolver's sandbox
	Offline   bool        // nothing is fetched
	// Background compiles the modules of a set.
	Background Background

	mu       sync.Mutex
	compiles map[string]string // the sets that are still to be compiled, with their images
}

// Get returns the packages that a script needs, for run.Options.
func (s *Packages) Get(ctx context.Context, image run.Image, n run.Needs, progress func(done, total int64, text string)) (run.PackageSet, error) {
	set, err := s.Ensure(ctx, image, n, false, progress)
	if _, ok := errors.AsType[*packages.UnreachableError](err); ok {
		err = fmt.Errorf("%w; packages can be fetched ahead with: %s", err, command("add", image, n))
	}
	if set == nil || err != nil {
		return run.PackageSet{}, s.Dirs.Explain(err)
	}
	if s.Store.NeedsBytecode(set) {
		s.compileLater(image.Name, set.ID)
	}
	found := run.PackageSet{Dir: set.Dir}
	for _, p := range set.Packages {
		found.List = append(found.List, record.Package(p))
	}
	return found, nil
}

// Here reports whether Get would find all that a script needs, and ask no index.
func (s *Packages) Here(ctx context.Context, image run.Image, n run.Needs) bool {
	if s.Offline { // missing packages are an error
		return true
	}
	r, err := s.request(ctx, image, n)
	return err == nil && s.Store.Has(r)
}

// Ensure returns the set of packages that a script needs, nil if it needs none. With anew it
// chooses their versions anew.
func (s *Packages) Ensure(ctx context.Context, image run.Image, n run.Needs, anew bool, progress func(done, total int64, text string)) (*packages.Set, error) {
	r, err := s.request(ctx, image, n)
	if err != nil || len(r.Requirements) == 0 {
		return nil, err
	}
	r.Anew = anew
	set, err := s.Store.Ensure(ctx, r, func(p packages.Progress) {
		if progress != nil {
			progress(p.Done, p.Total, p.Text)
		}
	})
	return set, classify(err, image, n)
}

// Lock returns the lock that the packages of a script lead to.
func (s *Packages) Lock(ctx context.Context, image run.Image, n run.Needs) ([]byte, error) {
	n.File = "" // a lock that is there is written anew
	r, err := s.request(ctx, image, n)
	if err != nil {
		return nil, err
	}
	lock, err := s.Store.Resolve(ctx, r)
	return lock, classify(err, image, n)
}

// classify marks the errors that a script has to fix, and adds the command that fetches missing
// packages.
func classify(err error, image run.Image, n run.Needs) error {
	var wrong *packages.RequestError
	if none, ok := errors.AsType[*packages.NoPackageError](err); ok {
		if like := hints.PackageLike(none.Name); like != "" {
			return run.Invalid(fmt.Errorf("%w; did you mean %s?", err, like))
		}
	}
	if none, ok := errors.AsType[*packages.NoWheelError](err); ok { // such as sklearn, which is there to say the right name
		if pkg := hints.Distribution(none.Name); pkg != none.Name {
			return run.Invalid(fmt.Errorf("%w; did you mean %s?", err, pkg))
		}
	}
	switch {
	case errors.Is(err, packages.ErrNotLocked):
		return run.Invalid(fmt.Errorf("%w; write it again with: %s", err, command("lock", image, n)))
	case errors.As(err, &wrong) && wrong.Locked:
		return run.Invalid(fmt.Errorf("%w; the lock beside the script can be written again with: %s", err, command("lock", image, n)))
	case errors.As(err, &wrong):
		return run.Invalid(err)
	case errors.Is(err, packages.ErrOffline):
		return fmt.Errorf("%w; where there is a network, fetch them with: %s", err, command("add", image, n))
	}
	return err
}

// command returns a command of toolcell packages for a script's needs.
func command(name string, image run.Image, n run.Needs) string {
	words := []string{"toolcell packages", name, "--image", text.ShellWord(image.Name)}
	if n.File != "" {
		return strings.Join(append(words, text.ShellWord(n.File)), " ")
	}
	for _, p := range n.Packages {
		words = append(words, text.ShellWord(p.String()))
	}
	return strings.Join(words, " ")
}

// request returns the request to the store.
func (s *Packages) request(ctx context.Context, image run.Image, n run.Needs) (packages.Request, error) {
	id, err := imageID(image)
	if err != nil {
		return packages.Request{}, err
	}
	of := packages.Image{ID: id, Python: image.Python}
	inSandbox := runIn(s.Sandboxes, image.Root, s.Limits)
	if n.Python.String() != "" {
		if err := s.checkPython(ctx, of, image.Name, n.Python, inSandbox); err != nil {
			return packages.Request{}, err
		}
	}
	r := packages.Request{
		Image: of, Ref: image.Name, Run: inSandbox, Index: n.Grant.Index, Files: n.Grant.Files, Constraints: n.Grant.Constraints, ExcludeNewer: n.Grant.ExcludeNewer,
		Before: n.Before, Offline: s.Offline,
		MaxBytes: n.Grant.MaxBytes, MaxCount: n.Grant.MaxCount, MaxTime: n.Grant.MaxTime, Check: n.Grant.Check,
		Credential: (*packages.Credential)(n.Grant.Credential),
	}
	for _, p := range n.Packages {
		r.Requirements = append(r.Requirements, p.String())
	}
	r.Lock, err = readLock(n.File)
	return r, err
}

// checkPython compares the script's requires-python with the image's Python.
func (s *Packages) checkPython(ctx context.Context, of packages.Image, name string, needs requirement.Specifier, inSandbox packages.Run) error {
	found, err := s.Store.PythonVersion(ctx, of, inSandbox)
	if err != nil {
		return err
	}
	version, err := requirement.ParseVersion(found)
	if err != nil {
		return err
	}
	if needs.Allows(version) {
		return nil
	}
	where := "the image " + name
	if name == "host" {
		where = "this host"
	}
	return run.Invalid(fmt.Errorf("the script requires Python %s, and %s has %s; the user can set TOOLCELL_IMAGE to another image", needs, where, found))
}

// imageID names the files of an image: the folder of its root has the digest in its
// name. The host's Python can change below a root of the host.
func imageID(image run.Image) (string, error) {
	id := filepath.Base(filepath.Dir(image.Root.Dir))
	if !strings.HasPrefix(id, "host-") {
		return id, nil
	}
	python, err := state.StampOf(pythonOnHost(image))
	if err != nil {
		return "", fmt.Errorf("looking at the host's Python: %w", err)
	}
	return fmt.Sprintf("%s-%x-%x-%x", id, python.Inode, python.Size, python.Modified), nil
}

// compileAfter is the time between a run's start and the compiling of its packages: by then
// most first runs have imported their modules, for which they need the processors themselves.
const compileAfter = 3 * time.Second

// compileLater starts to compile a set after a while.
func (s *Packages) compileLater(image, set string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiles == nil {
		s.compiles = map[string]string{}
	}
	if s.compiles[set] == "" {
		s.compiles[set] = image
		time.AfterFunc(compileAfter, contain.Func("compiling packages", func() { s.compileNow(set) }))
	}
}

// compileNow starts to compile sets, if they are still to be compiled.
func (s *Packages) compileNow(sets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range sets {
		if image := s.compiles[set]; image != "" {
			delete(s.compiles, set)
			s.Background.Compile(image, set)
		}
	}
}

// Close starts to compile the sets that wait: the runs are over.
func (s *Packages) Close() {
	s.mu.Lock()
	waiting := slices.Collect(maps.Keys(s.compiles))
	s.mu.Unlock()
	s.compileNow(waiting...)
}
