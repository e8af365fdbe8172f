package installer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// A change is an edit that install is about to make, or has made.
type change struct {
	*Installer
	result  edit.Result
	command string // that starts toolcell

	move   edit.Move
	moved  *editedFile // where servers are moved to; nil if none are
	cost   *tokenCost
	backup string
}

// rowName returns the name of a server, with the directory that the client keeps it for.
func rowName(name, dir string) string {
	if dir == "" {
		return name
	}
	return name + " (in " + dir + ")"
}

// write makes the change, servers first into their new file: if the second
// step fails they are in both, which counts once.
func (c *change) write() (err error) {
	if !c.file.changed() {
		return nil
	}
	if err := c.checkWritable(c.file, c.moved); err != nil {
		return err
	}
	record, _, err := c.record(c.target.File)
	if err != nil {
		return err
	}
	if record.Sum != checksum(c.file.before) { // undo restores the present content
		record = edit.Record{MadeKey: !c.target.HasKey(c.file.before), Moved: record.Moved, Local: record.Local, MovedTo: record.MovedTo, MadeDirs: record.MadeDirs}
		if record.Backup, err = c.file.backup(); err != nil {
			return err
		}
	}
	c.backup, record.Name, record.Sum = record.Backup, c.result.Name, checksum(c.file.after)
	if c.moved != nil {
		record.AddMoved(c.move)
		record.MovedTo, record.MovedSum = c.moved.path, checksum(c.moved.after)
		if err := c.moved.write(); err != nil {
			return err
		}
		record.MadeDirs = append(record.MadeDirs, c.moved.madeDirs...)
		if err := c.copyValues(); err != nil {
			return err
		}
	}
	if err := c.file.write(); err != nil {
		return errors.Join(err, c.undoMove())
	}
	record.MadeDirs = append(record.MadeDirs, c.file.madeDirs...)
	return c.journal.Change(func(all map[string]edit.Record) { all[c.target.File] = record })
}

// undoMove undoes the first half of a move.
func (c *change) undoMove() error {
	switch {
	case c.moved == nil:
		return nil
	case c.moved.mode == 0:
		return c.moved.remove()
	}
	c.moved.before, c.moved.after = c.moved.after, c.moved.before
	return c.moved.write()
}

// copyValues copies the values that the user set for inputs of the client's file
// to the file that its servers move to.
func (c *change) copyValues() error {
	for id, value := range c.Values.Of(c.target.File) {
		if err := c.Values.Set(c.moved.path, id, value); err != nil {
			return fmt.Errorf("keeping a value: %w", err)
		}
	}
	return nil
}

// notNamed explains why the entry does not have the requested name, "" if it has.
func (c *change) notNamed() string {
	if c.result.NotNamed == "" {
		return ""
	}
	return fmt.Sprintf("%s starts toolcell already, as %q: no entry %q was added", c.target.Title, c.result.Name, c.result.NotNamed)
}

// show prints the change as a diff in which values of variables and headers
// are left out.
func (c *change) show(w *os.File) error {
	var text strings.Builder
	if !c.file.changed() {
		fmt.Fprintf(&text, "nothing would change: %q is in %s\n", c.result.Name, c.target.File)
	}
	if note := c.notNamed(); note != "" {
		fmt.Fprintln(&text, note)
	}
	printDiff(&text, console.ColorsFor(w), c.diff())
	c.reportMove(&text)
	if _, err := io.WriteString(w, text.String()); err != nil || c.cost == nil {
		return err
	}
	return c.cost.print(w)
}

// diff returns how the files change, without the values of variables and headers.
func (c *change) diff() string {
	secrets := c.target.Secrets(c.file.before)
	text := diff(c.file.path, c.file.before, c.file.after)
	if c.moved != nil {
		secrets = append(secrets, c.target.Secrets(c.moved.before)...)
		text += diff(c.moved.path, c.moved.before, c.moved.after)
	}
	return secretsHider(secrets).Replace(text)
}

// diff returns how a file changes, in the unified form; empty if it does not.
func diff(path string, before, after []byte) string {
	return udiff.Unified(path, path, string(before), string(after))
}

// printDiff prints a diff, in colors on a terminal. A removed line may begin as
// the head of a file does, which is two lines before an @@.
func printDiff(w io.Writer, colors console.Colors, text string) {
	lines := slices.Collect(strings.Lines(text))
	for i, line := range lines {
		line = console.Plain(strings.TrimSuffix(line, "\n"))
		isHead := func(first int) bool {
			return first >= 0 && first+2 < len(lines) && strings.HasPrefix(lines[first], "--- ") &&
				strings.HasPrefix(lines[first+1], "+++ ") && strings.HasPrefix(lines[first+2], "@@ ")
		}
		if isHead(i) || isHead(i-1) {
			fmt.Fprintln(w, colors.Bold(line))
		} else {
			fmt.Fprintln(w, colors.Diff(line))
		}
	}
}

// secretsHider replaces secrets by dots, also as JSON writes them.
func secretsHider(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "…", strings.Trim(fmt.Sprintf("%q", s), `"`), "…")
	}
	return strings.NewReplacer(pairs...)
}
