// Package project shows code the client's folder, read-only at [Target], without the files that
// usually hold secrets.
//
// It finds the folder, refuses those that code must not see, and finds what in it is to be
// hidden, anew for each run. It promises that a run whose folder cannot be looked through within
// bounds gets none of it. It mounts nothing: what it finds is a spec.Project. Hard links of a
// hidden file under other names, and copies, are not hidden, nor is what appears later.
package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/oci/spec"
)

// Target is where code sees the folder.
const Target = spec.ProjectTarget

// Options configure Projects.
type Options struct {
	Dir    string                                  // the folder of clients that name none
	Check  func(dir string) error                  // refuses folders that code must not see
	Denied func(p spec.Project) (why, cure string) // what keeps code from reading it; may be nil
}

// Projects find the folders of clients. They are safe for concurrent use.
type Projects struct {
	o Options

	turn  chan struct{} // has room for the one that looks; guards what follows
	index *index        // of the last folder
	// tooLarge is why that is not shown, until a time: the next runs need not wait to find out.
	tooLarge error
	until    time.Time
}

// retry is for how long a folder counts as too large.
const retry = time.Minute

// New makes Projects.
func New(o Options) *Projects { return &Projects{o: o, turn: make(chan struct{}, 1)} }

// Resolve returns the real path of the folder dir, by default that of Options.Dir, if code may
// see it. What is wrong with it is an error in words for the user.
func (p *Projects) Resolve(dir string) (string, error) {
	if dir == "" {
		dir = p.o.Dir
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", notShown(dir, "it does not exist", "")
	}
	if err != nil {
		return "", notShown(dir, err.Error(), "")
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() || !filepath.IsAbs(real) {
		return "", notShown(dir, "it is not a folder", "")
	}
	if p.o.Check != nil {
		if err := p.o.Check(real); err != nil {
			return "", err
		}
	}
	return real, nil
}

// Find looks through a folder that Resolve has returned. If ctx ends first, the error is its cause.
func (p *Projects) Find(ctx context.Context, real string) (*spec.Project, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p.index == nil || p.index.root != real {
		p.index, p.tooLarge = newIndex(real), nil
	}
	if p.tooLarge != nil && time.Now().Before(p.until) {
		return nil, p.tooLarge
	}
	hidden, err := p.index.look(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		p.index, p.tooLarge = newIndex(real), nil
		if errors.As(err, new(*boundError)) {
			p.tooLarge, p.until = err, time.Now().Add(retry)
		}
		return nil, err
	}
	return &spec.Project{Source: real, Hidden: hidden}, nil
}

// Note says what the user should know about a folder that is shown, "" if nothing.
func (p *Projects) Note(shown spec.Project) string {
	if p.o.Denied == nil {
		return ""
	}
	why, cure := p.o.Denied(shown)
	if why == "" {
		return ""
	}
	return why + "; to fix it: " + cure
}

// notShown returns why a folder is not shown, and what else to do, if anything.
func notShown(dir, why, instead string) error {
	if instead != "" {
		instead = "; " + instead
	}
	return fmt.Errorf("the project's folder %q is not shown at %s: %s%s", dir, Target, why, instead)
}
