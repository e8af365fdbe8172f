// Package pypi gets MCP servers from the Python package index: the packages of one, in
// versions that stay, and the program among them that is the server.
//
// A server's versions are chosen when it is first started, and are kept in its lock. From then
// on it gets these and no others, without asking the index, until the user accepts an Update
// or its entry asks for other packages. What packages may be, where they come from and how
// they are checked is up to the request, as for the packages of a script (rootfs/packages).
package pypi

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// Interpreter as the Program of a Server is the Python that has the packages.
const Interpreter = "python"

// A Server is what an entry asks for.
type Server struct {
	Name string // for messages and in commands
	Dir  string // where its lock is: a folder of its own, which is made if it is missing
	// Requirements are at least one. The caller has checked them against the policy. A program
	// is looked for in the first one first.
	Requirements []requirement.Requirement
	Program      string                // one of the packages' console scripts, or Interpreter
	Python       requirement.Specifier // versions that will do
}

// An Installed is a server whose packages are here.
type Installed struct {
	// Set has the packages. A sandbox needs its Dir at packages.Target, and no process removes it
	// while this one runs.
	Set *packages.Set

	script *script // nil is the interpreter
}

// Ensure returns the packages of a server and its program. At the first time, and when its
// entry asks for others than those that are locked, it chooses versions and locks them; else it
// uses the lock, and asks the index only if the image or the policy's rules are others since, or
// for what the store no longer has. The request says what one for a script on the image would
// say; what it requires and its lock do not count. Progress may be nil.
func (s Server) Ensure(ctx context.Context, store *packages.Store, r packages.Request, progress func(packages.Progress)) (*Installed, error) {
	r, err := s.request(ctx, store, r)
	if err != nil {
		return nil, err
	}
	if r.Lock, err = s.locked(ctx, store, r); err != nil {
		return nil, s.explain("choosing the packages", err)
	}
	set, err := store.Ensure(ctx, r, progress)
	if err != nil {
		return nil, s.explain("getting the packages", err)
	}
	i := &Installed{Set: set}
	if s.Program != Interpreter {
		if i.script, err = findScript(set.Dir, s.Requirements, s.Program); err != nil {
			return nil, s.explain("looking for the program", err)
		}
	}
	return i, nil
}

// request makes a request one for the server's packages.
func (s Server) request(ctx context.Context, store *packages.Store, r packages.Request) (packages.Request, error) {
	if len(s.Requirements) == 0 {
		panic("pypi: a server without packages")
	}
	r.Requirements, r.Lock, r.Anew = nil, nil, false
	for _, wanted := range s.Requirements {
		r.Requirements = append(r.Requirements, wanted.String())
	}
	if s.Python.String() == "" {
		return r, nil
	}
	found, err := store.PythonVersion(ctx, r.Image, r.Run)
	if err != nil {
		return r, err
	}
	version, err := requirement.ParseVersion(found)
	if err == nil && !s.Python.Allows(version) {
		err = fmt.Errorf("the server %s asks for Python %s, and the image %s has %s; give the server another image, or change its command", s.quoted(), s.Python, r.Ref, found)
	}
	return r, err
}

// A LockError says that a server cannot have the packages of its lock any more, which an Update
// may cure.
type LockError struct {
	Server string
	File   string // the lock
	Err    error
}

func (e *LockError) Error() string {
	return fmt.Sprintf("%v; the server is locked to these versions in %s until it is updated: toolcell servers update %s",
		e.Err, e.File, text.ShellWord(text.OneLine(e.Server, 128)))
}

func (e *LockError) Unwrap() error { return e.Err }

// explain says of which server an error is, and what helps.
func (s Server) explain(doing string, err error) error {
	err = fmt.Errorf("%s of the server %s: %w", doing, s.quoted(), err)
	if wrong, ok := errors.AsType[*packages.RequestError](err); ok && wrong.Locked || errors.Is(err, packages.ErrNotLocked) {
		return &LockError{s.Name, s.lock().Path, err}
	}
	if _, unreachable := errors.AsType[*packages.UnreachableError](err); unreachable || errors.Is(err, packages.ErrOffline) {
		return fmt.Errorf("%w; where the index can be reached, get them with: toolcell servers check %s", err, text.ShellWord(text.OneLine(s.Name, 128)))
	}
	return err
}

func (s Server) quoted() string { return fmt.Sprintf("%q", text.OneLine(s.Name, 80)) }
