package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/install"
)

// A change is what install is about to do, or has done.
type change struct {
	*installer
	put   install.Result
	entry string

	move   install.Move
	moved  *editedFile // where servers go; nil if none do
	price  *bill
	backup string
}

// names are those of the servers that go.
func (c *change) names() (names []string) {
	for _, m := range c.move.Servers {
		names = append(names, m.Name)
	}
	return names
}

// write makes the change, servers first into their new file: if the second
// step fails they are in both, which counts once.
func (c *change) write() (err error) {
	if !c.file.changed() {
		return nil
	}
	record, _, err := c.installs.Of(c.place.File)
	if err != nil {
		return err
	}
	if record.Sum != sumOf(c.file.before) { // what undo leads back to is what there is now
		record = install.Record{MadeKey: !c.place.HasKey(c.file.before), Moved: record.Moved, MovedTo: record.MovedTo}
		if record.Backup, err = c.file.backup(); err != nil {
			return err
		}
	}
	c.backup, record.Name, record.Sum = record.Backup, c.put.Name, sumOf(c.file.after)
	if c.moved != nil {
		record.Moved, record.MovedTo, record.MovedSum = append(record.Moved, c.names()...), c.moved.path, sumOf(c.moved.after)
		if err := c.moved.write(); err != nil {
			return err
		}
		if err := c.carryValues(); err != nil {
			return err
		}
	}
	if err := c.file.write(); err != nil {
		return errors.Join(err, c.takeBack())
	}
	return c.installs.Set(c.place.File, record)
}

// takeBack undoes the first half of a move.
func (c *change) takeBack() error {
	switch {
	case c.moved == nil:
		return nil
	case c.moved.mode == 0:
		return c.moved.remove()
	}
	c.moved.before, c.moved.after = c.moved.after, c.moved.before
	return c.moved.write()
}

// carryValues takes along what the user set for inputs of the client's file.
func (c *change) carryValues() error {
	for id, value := range c.found.values.Of(c.place.File) {
		if err := c.found.values.Set(c.moved.path, id, value); err != nil {
			return fmt.Errorf("keeping a value: %w", err)
		}
	}
	return nil
}

// tell says what was done, and how it is undone.
func (c *change) tell(w *os.File) {
	p := c.place
	switch c.put.Did {
	case install.Added:
		fmt.Fprintf(w, "added to %s as %q: %s\n  starts: %s\n", p.Title, c.put.Name, p.File, c.entry)
	case install.Updated:
		fmt.Fprintf(w, "updated in %s, %q: %s\n  starts: %s\n", p.Title, c.put.Name, p.File, c.entry)
		if c.put.Was != "" && c.put.Was+" serve" != c.entry {
			fmt.Fprintf(w, "  was: %s\n", c.put.Was)
		}
	default:
		fmt.Fprintf(w, "already there: %q in %s\n", c.put.Name, p.File)
	}
	if c.put.Off {
		fmt.Fprintf(w, "  it is switched off in that file: switch it on there\n")
	}
	if len(c.move.Servers) > 0 {
		fmt.Fprintf(w, "moved %s to %s\n", strings.Join(c.names(), ", "), c.moved.path)
	}
	if c.backup != "" {
		fmt.Fprintf(w, "  before: %s\n", c.backup)
	}
	if c.file.changed() {
		fmt.Fprintf(w, "  undo: toolcell install %s%s --undo\n", p.Client, c.scope())
		if note := p.Note(); note != "" {
			fmt.Fprintf(w, "  %s: %s\n", p.Title, note)
		}
	}
	if _, others, err := p.Others(c.file.after); err == nil && others > 0 && !c.c.Bool("move-servers") && !p.Project {
		fmt.Fprintf(w, "  its %d other server%s cost tokens in every request: toolcell install %s --move-servers --dry-run\n", others, plural(others), p.Client)
	}
}

func (i *installer) scope() string {
	if i.place.Project {
		return " --project"
	}
	return ""
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// show prints the change as a diff in which values of variables and headers
// are left out.
func (c *change) show(w *os.File) error {
	if !c.file.changed() {
		fmt.Fprintf(w, "nothing would change: %q is in %s\n", c.put.Name, c.place.File)
	}
	hide := hider(c.place.Secrets(c.file.before))
	text := diff(c.file.path, c.file.before, c.file.after)
	if c.moved != nil {
		text += diff(c.moved.path, c.moved.before, c.moved.after)
	}
	for line := range strings.Lines(hide.Replace(text)) {
		fmt.Fprintln(w, colored(console.ColorsFor(w), console.Plain(strings.TrimSuffix(line, "\n"))))
	}
	c.tellMove(w)
	return nil
}

// colored colors a line of a diff.
func colored(i console.Colors, line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return i.Green(line)
	case strings.HasPrefix(line, "-"):
		return i.Red(line)
	}
	return line
}

// hider replaces secrets by dots, as JSON writes them too.
func hider(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "…", strings.Trim(fmt.Sprintf("%q", s), `"`), "…")
	}
	return strings.NewReplacer(pairs...)
}
