// Package rights remembers which entry of a server the rights were accepted for that the policy gives
// to a sandboxed server of that name.
//
// It promises that rights go to no other entry without the user's consent: none with another source,
// command, arguments, folder, environment or image. A name in the policy is not enough, since a
// project's file can take the name of a server of the user's, and an update can change an entry. The
// first entry in a file of the user's own is accepted as it is, one in a project's file never without
// the user. Programs and packages that a command names are not looked at.
package rights

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

const (
	suffix     = ".json"
	maxServers = 1000 // in the folder; each has some 100 KiB at most
	maxSources = 10   // of one server
)

// A Store is a folder of what was accepted, a file for each server's name. Several processes may use it
// at the same time.
type Store struct{ dir string }

// Open returns the store in a folder of this program's, which is made when something is accepted.
func Open(dir string) Store { return Store{dir} }

// Accepted is an entry for which rights were accepted.
type Accepted struct {
	Digest string            `json:"digest"`        // of all that makes it another entry, but for
	Env    map[string]string `json:"env,omitempty"` // digests of its variables: names, and names with values
	Entry  []string          `json:"entry"`         // for people: it has no secrets
	Rights []string          `json:"rights"`        // as they were when they were last used
	Since  time.Time         `json:"since"`
}

// file is where the accepted entries of a server are, by their source.
func (s Store) file(name string) state.File[Accepted] {
	return state.File[Accepted]{Path: filepath.Join(s.dir, fmt.Sprintf("%x", sha256.Sum256([]byte(name)))+suffix)}
}

// Check returns an error unless a server may start with what the policy gives it: a *ChangedError if
// the user has to accept it first. A server that gets nothing may always start. The first entry of a name
// is accepted here if it is in a file of the user's own.
func (s Store) Check(server config.Server, box *policy.Sandbox) error {
	now, known, err := s.look(server, box)
	if known || err != nil {
		return err
	}
	return s.keep(server, box, now)
}

// Allowed returns the error of Check, and accepts nothing.
func (s Store) Allowed(server config.Server, box *policy.Sandbox) error {
	_, _, err := s.look(server, box)
	return err
}

// look returns the entry of a server as it is now, and whether it was accepted or needs not be. The error
// is a *ChangedError if the user has to accept it first.
func (s Store) look(server config.Server, box *policy.Sandbox) (now Accepted, known bool, err error) {
	rights := Of(server, box)
	if len(rights) == 0 {
		return now, true, nil
	}
	now = entryOf(server, box, rights)
	all, err := s.file(server.Name).Read()
	if err != nil {
		return now, false, fmt.Errorf("looking up what server %q may have: %w", server.Name, err)
	}
	was, known := all[server.Source]
	switch {
	case known && was.isSame(now, box) && slices.Equal(was.Rights, now.Rights):
		return now, true, nil
	case known && !was.isSame(now, box), !known && (len(all) > 0 || server.Project):
		return now, false, changed(server, box, all, now)
	}
	return now, false, nil
}

// keep writes an entry that is accepted without a question, unless another process has accepted
// another one meanwhile.
func (s Store) keep(server config.Server, box *policy.Sandbox, now Accepted) (err error) {
	if errRoom := s.room(); errRoom != nil {
		return errRoom
	}
	errChange := s.file(server.Name).Change(func(all map[string]Accepted) {
		was, known := all[server.Source]
		if known && !was.isSame(now, box) || !known && len(all) > 0 {
			err = changed(server, box, all, now)
			return
		}
		if known {
			now.Since = was.Since
		}
		all[server.Source] = now
	})
	if errChange != nil {
		return fmt.Errorf("keeping what server %q may have: %w", server.Name, errChange)
	}
	return err
}

// room returns an error if there are too many files.
func (s Store) room() error {
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(names) > 2*maxServers { // each has a lock
		err = fmt.Errorf("it has more than %d servers; remove those that are not needed: toolcell servers untrust NAME", maxServers)
	}
	if err != nil {
		return fmt.Errorf("keeping rights in %s: %w", s.dir, err)
	}
	return nil
}

// Accept accepts the entry of a server as it is, with what the policy gives it. It takes the place of
// what was accepted from the same file.
func (s Store) Accept(server config.Server, box *policy.Sandbox) error {
	if err := s.room(); err != nil {
		return err
	}
	return s.file(server.Name).Change(func(all map[string]Accepted) {
		all[server.Source] = entryOf(server, box, Of(server, box))
		for len(all) > maxSources {
			oldest := ""
			for source, a := range all {
				if source != server.Source && (oldest == "" || a.Since.Before(all[oldest].Since)) {
					oldest = source
				}
			}
			delete(all, oldest)
		}
	})
}

// Forget takes back all that was accepted for servers of a name, and reports whether there was anything.
func (s Store) Forget(name string) (was bool, err error) {
	file := s.file(name)
	if all, err := file.Read(); err == nil && len(all) == 0 {
		return false, nil
	}
	err = os.Remove(file.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// A ChangedError says that the user has to accept the entry of a server before it gets what the policy
// gives a server of that name.
type ChangedError struct {
	Server, Source string
	Project        bool     // Source is a project's file
	New            bool     // nothing was accepted for this name yet
	Gives          string   // what the policy says that has to be accepted, in words
	Parts          []string // what has changed, in words
	Diff           string   // lines of the entry, as pins.LineDiff has them
}

func (e *ChangedError) Error() string {
	cure := "to see and accept this: toolcell servers trust " + text.ShellWord(e.Server)
	if e.New {
		return fmt.Sprintf("server %q is of a project's file, %s, and %s, which you have not accepted; %s", e.Server, e.Source, e.Gives, cure)
	}
	return fmt.Sprintf("server %q is not as you accepted it (%s changed), and %s; %s", e.Server, strings.Join(e.Parts, ", "), e.Gives, cure)
}

// changed makes the error of an entry that was not accepted.
func changed(server config.Server, box *policy.Sandbox, all map[string]Accepted, now Accepted) *ChangedError {
	e := &ChangedError{Server: server.Name, Source: server.Source, Project: server.Project, New: len(all) == 0}
	if e.Gives = box.Section + " of the policy gives it something"; server.Project && box.Mode == policy.SandboxOff {
		e.Gives = "it would run without a sandbox by " + box.Rule
	}
	was := nearest(all, server.Source)
	e.Parts = differing(was.Entry, now.Entry)
	e.Diff = pins.LineDiff(lines(was.Entry), lines(now.Entry))
	return e
}

// nearest returns what was accepted from the same file, otherwise what was accepted last.
func nearest(all map[string]Accepted, source string) (was Accepted) {
	if a, ok := all[source]; ok {
		return a
	}
	for _, a := range all {
		if a.Since.After(was.Since) {
			was = a
		}
	}
	return was
}

func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// Diff returns how the entry of a server and its rights differ from what was accepted, and whether
// anything was: before that it is the entry alone. It is empty if nothing differs.
func (s Store) Diff(server config.Server, box *policy.Sandbox) (diff string, known bool, err error) {
	rights := Of(server, box)
	now := entryOf(server, box, rights)
	all, err := s.file(server.Name).Read()
	if err != nil {
		return "", false, err
	}
	was := nearest(all, server.Source)
	if len(all) > 0 && was.isSame(now, box) && slices.Equal(was.Rights, now.Rights) {
		return "", true, nil
	}
	before, after := slices.Concat(was.Entry, was.Rights), slices.Concat(now.Entry, now.Rights)
	if len(all) == 0 {
		after = now.Entry
	}
	if diff = pins.LineDiff(lines(before), lines(after)); diff == "" || slices.Equal(before, after) {
		diff = "  it differs in a part that is not shown, such as a secret\n"
	}
	return diff, len(all) > 0, nil
}
