// Package savedtools stores the functions and classes that code asked to save,
// one folder for each project. They were written in a sandbox: they are bounded
// data and never run here.
package savedtools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// MaxSource bounds the source of one tool, in bytes.
const MaxSource = 64 << 10

// Bounds on the other fields.
const (
	maxTools     = 200
	maxSignature = 2 << 10
	maxDoc       = 8 << 10
	maxSchema    = 16 << 10
	maxImports   = 100
	maxPrivate   = 20
	maxImport    = 200 // bytes of one
	noteRoom     = 64  // bytes that the note on what was cut has at most
	maxFile      = MaxSource + 2*(maxDoc+maxSignature+maxSchema) + (maxImports+maxPrivate)*(2*maxImport+3) + 1<<10
)

// ErrNotExist is in the chain of an error when there is no tool of that name.
var ErrNotExist = errors.New("there is no such saved tool")

var validName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// A Tool is a function or class that code asked to save. All of it was written
// in a sandbox: it is data, bounded and limited to one line where it should be,
// and its source only ever runs in a sandbox.
type Tool struct {
	Name      string          `json:"name"`
	Signature string          `json:"signature,omitempty"` // such as (a: int, b: str = 'x') -> list
	Doc       string          `json:"doc,omitempty"`
	Imports   []string        `json:"imports,omitempty"` // modules that it imports
	Schema    json.RawMessage `json:"schema,omitempty"`  // of its parameters
	Saved     time.Time       `json:"saved,omitzero"`
	Private   []string        `json:"private,omitempty"` // what was read from private servers before it was saved
	Source    string          `json:"source,omitempty"`  // stands alone, imports included
}

// Store are the saved tools of one project, each a Python file of its own
// in a folder of the project's. It is safe for concurrent use, also by several
// processes.
type Store struct {
	dir     string // of all projects; nothing is kept if it is empty
	project string
}

// Open returns the saved tools of a project: a directory as returned by
// ProjectOf, or "" for tools saved outside any project. Nothing is read or
// created yet.
func Open(dir, project string) Store { return Store{dir, project} }

// Project is the directory of the project, "" outside of any.
func (s Store) Project() string { return s.project }

// List returns all tools, sorted by name. Tools that cannot be read are left
// out and listed in the problems.
func (s Store) List() (tools []Tool, problems []error) {
	names, err := s.Names()
	if err != nil {
		return nil, []error{err}
	}
	for _, name := range names {
		t, err := s.Show(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		tools = append(tools, t)
	}
	return tools, problems
}

// Show returns one tool. If there is none of that name, the error is an
// ErrNotExist and names the existing ones.
func (s Store) Show(name string) (Tool, error) {
	if err := s.has(name); err != nil {
		return Tool{}, err
	}
	body, err := state.ReadRegular(s.file(name), maxFile)
	if err != nil {
		return Tool{}, fmt.Errorf("reading saved tool %q: %w", name, err)
	}
	return parse(name, body), nil
}

// Load is Show for code that runs the tool. It is refused, as saving one is, if
// the tool has a name that code imports something by.
func (s Store) Load(name string) (Tool, error) {
	t, err := s.Show(name)
	if err == nil {
		err = checkReserved(name)
	}
	if err != nil {
		return Tool{}, err
	}
	return t, nil
}

// Remove deletes one tool. If there is none of that name, the error is an
// ErrNotExist and names the existing ones.
func (s Store) Remove(name string) error {
	if err := s.has(name); err != nil {
		return err
	}
	if err := os.Remove(s.file(name)); err != nil {
		return fmt.Errorf("removing saved tool %q: %w", name, err)
	}
	return nil
}

// Export writes the named tools, or all, as the text of one Python module.
func (s Store) Export(w io.Writer, names ...string) error {
	tools, err := s.Named(names...)
	if err == nil {
		_, err = io.WriteString(w, Module(tools))
	}
	return err
}

// Named returns the named tools, each once, or all if there is no name.
func (s Store) Named(names ...string) (tools []Tool, err error) {
	if len(names) == 0 {
		tools, problems := s.List()
		return tools, errors.Join(problems...)
	}
	for _, name := range names {
		if slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == name }) {
			continue // named again, maybe thousands of times
		}
		t, err := s.Show(name)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// Save stores a tool under its name, replacing any other of that name.
func (s Store) Save(t Tool) error {
	switch {
	case s.dir == "":
		return fmt.Errorf("saving tool %q: there is no folder for saved tools", text.Bound(t.Name, 80))
	case !validName().MatchString(t.Name):
		return fmt.Errorf("saving a tool: %q is not a name for one (letters, digits and _, at most 64)", text.Bound(t.Name, 80))
	case len(t.Source) > MaxSource:
		return fmt.Errorf("saving tool %q: its source has %d bytes, the most is %d", t.Name, len(t.Source), MaxSource)
	}
	if err := checkReserved(t.Name); err != nil {
		return fmt.Errorf("saving tool %q: %w", t.Name, err)
	}
	t.Saved = time.Now().UTC().Truncate(time.Second)
	body, err := format(t.bounded(noteRoom))
	if err == nil {
		err = s.makeFolder()
	}
	if err != nil {
		return fmt.Errorf("saving tool %q: %w", t.Name, err)
	}
	if _, err := os.Lstat(s.file(t.Name)); err != nil {
		if names, _ := s.Names(); len(names) >= maxTools {
			return fmt.Errorf("saving tool %q: there are %d saved tools already, which is the most; runtime.remove_tool(name) removes one", t.Name, len(names))
		}
	}
	if err := state.Replace(s.file(t.Name), body, state.Options{Unsynced: true}); err != nil {
		return fmt.Errorf("saving tool %q: %w", t.Name, err)
	}
	return nil
}

// Names lists the names of the tools, sorted, at most maxTools.
func (s Store) Names() ([]string, error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the saved tools: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".py")
		if ok && e.Type().IsRegular() && validName().MatchString(name) && len(names) < maxTools {
			names = append(names, name)
		}
	}
	return names, nil
}

// IsName reports whether a tool may have this name.
func IsName(name string) bool { return validName().MatchString(name) }

// has tells, as an error, that there is no tool of this name.
func (s Store) has(name string) error {
	names, err := s.Names()
	switch {
	case err != nil:
		return err
	case slices.Contains(names, name):
		return nil
	case len(names) == 0:
		return fmt.Errorf("%w: %q; none are saved here", ErrNotExist, text.Bound(name, 80))
	}
	more := ""
	if n := len(names) - 20; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %q; there are %s%s", ErrNotExist, text.Bound(name, 80), strings.Join(names[:min(len(names), 20)], ", "), more)
}

func (s Store) file(name string) string { return filepath.Join(s.folder(), name+".py") }

// bounded cuts the fields of a tool to their limits. Of a tool to be saved they are cut shorter
// by room, so that reading it does not cut them again.
func (t Tool) bounded(room int) Tool {
	t.Signature = text.OneLine(t.Signature, maxSignature-room)
	t.Doc = text.Bound(strings.Map(text.DropControl, t.Doc), maxDoc-room)
	t.Imports = boundedLines(t.Imports, maxImports, maxImport-room)
	t.Private = boundedLines(t.Private, maxPrivate, maxImport-room)
	var schema map[string]any
	if len(t.Schema) > maxSchema || json.Unmarshal(t.Schema, &schema) != nil {
		t.Schema = nil
	}
	return t
}

func boundedLines(lines []string, most, size int) []string {
	lines = slices.Clone(lines[:min(len(lines), most)])
	for i, line := range lines {
		lines[i] = text.OneLine(line, size)
	}
	return lines
}

// A saved tool's file is Python: its first line is a comment with its other
// fields as JSON, and its source follows.
const mark = "# saved by toolcell: "

// markLine may follow lines that the user has put before it.
var markLine = text.Pattern(`(?m)^` + mark + `(.*)(?:\n|\z)`)

func format(t Tool) ([]byte, error) {
	source := t.Source
	t.Name, t.Source = "", "" // the file's name, and its content
	var about bytes.Buffer
	e := json.NewEncoder(&about)
	e.SetEscapeHTML(false) // it would take six bytes for one
	err := e.Encode(t)
	return []byte(mark + about.String() + source), err
}

// parse also accepts a file that the user has edited or put there.
func parse(name string, body []byte) Tool {
	var t Tool
	source := strings.ToValidUTF8(string(body), "\uFFFD")
	if at := markLine().FindStringSubmatchIndex(source); at != nil {
		known := &t
		if json.Unmarshal([]byte(source[at[2]:at[3]]), &known) != nil || known == nil {
			t = Tool{Private: []string{"what its first line does not say any more"}}
		}
		source = source[:at[0]] + source[at[1]:]
	}
	t = t.bounded(0)
	t.Name, t.Source = name, source
	return t
}

// Module returns the text of one Python module with these tools. Lines that must come
// first in a Python file appear once.
func Module(tools []Tool) string {
	var head, body strings.Builder
	written := map[string]bool{}
	for _, t := range tools {
		future, source := cutFuture(t.Source)
		for _, line := range future {
			if !written[line] {
				written[line] = true
				head.WriteString(line + "\n")
			}
		}
		body.WriteString("\n\n" + strings.Trim(source, "\n") + "\n")
	}
	return `"""Functions saved by run_python."""` + "\n" + head.String() + body.String()
}

// cutFuture returns the __future__ lines of a source, which only comments may precede, and the
// source without them.
func cutFuture(source string) (future []string, rest string) {
	var comments strings.Builder
	read := 0
	for line := range strings.Lines(source) {
		bare := strings.TrimSpace(line)
		isFuture := strings.HasPrefix(line, "from __future__ import ") && !strings.ContainsAny(line, `(\;`)
		switch {
		case isFuture:
			future = append(future, bare)
		case bare == "" || bare[0] == '#':
			comments.WriteString(line)
		default:
			return future, comments.String() + source[read:]
		}
		read += len(line)
	}
	return future, comments.String()
}
