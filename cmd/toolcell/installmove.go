package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// plan finds out what can be moved, and what it saves.
func (c *change) plan() error {
	if c.place.Project {
		return console.Usagef("--move-servers is for your own file: servers of a project belong to all who work on it")
	}
	var err error
	if c.move, err = c.place.PlanMove(c.file.after, c.found.values.Of(c.place.File)); err != nil {
		return fmt.Errorf("%s %w", c.place.File, err)
	}
	if len(c.move.Servers) == 0 {
		c.tellMove(c.s.Err)
		return nil
	}
	if c.moved, err = openEdited(c.place.MovedFile()); err != nil {
		return err
	}
	if c.file.after, c.moved.after, err = c.place.MoveOut(c.file.after, c.moved.before, c.names()); err != nil {
		return err
	}
	c.price = c.count()
	return nil
}

// confirm shows the move and asks for it.
func (c *change) confirm() error {
	if c.c.Bool("yes") {
		c.tellMove(c.s.Err)
		return nil
	}
	if !console.Terminal(c.s.In) || !console.Terminal(c.s.Err) {
		return console.Usagef("nothing was moved: there is no terminal to ask on; look with --dry-run, then add --yes")
	}
	if err := c.show(c.s.Err); err != nil {
		return err
	}
	fmt.Fprintf(c.s.Err, "Move %d server%s of %s behind toolcell? [y/N] ", len(c.move.Servers), plural(len(c.move.Servers)), c.place.Title)
	answer, err := console.ReadLine(c.c.Context, c.s.In)
	if err != nil || !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return &console.ExitError{Code: console.ExitFail, Err: fmt.Errorf("nothing was changed")}
	}
	return nil
}

// tellMove says what goes, what stays and why, and what it saves.
func (c *change) tellMove(w *os.File) {
	if c.c.Bool("move-servers") && len(c.move.Servers) == 0 {
		fmt.Fprintf(w, "there are no servers to move in %s\n", c.place.File)
	}
	for _, stay := range c.move.Stay {
		fmt.Fprintf(w, "stays: %s: %s\n", stay.Server, stay.Reason)
	}
	for _, m := range c.move.Servers {
		if len(m.Variables) > 0 {
			fmt.Fprintf(w, "note: %s needs %s: if %s does not pass it on to toolcell, keep it with toolcell servers set %s\n",
				m.Name, strings.Join(m.Variables, " and "), c.place.Title, m.Name)
		}
	}
	if c.price != nil {
		c.price.print(w)
	}
}

// count asks every server that goes for its tools.
func (c *change) count() *bill {
	var names []string
	for _, m := range c.move.Servers {
		if !m.Disabled {
			names = append(names, m.Name)
		}
	}
	exe := strings.TrimSuffix(c.entry, " serve")
	return countTokens(c.c.Context, c.installer, names, config.Server{Name: "toolcell", Alias: "toolcell", Transport: config.Stdio, Command: exe, Args: []string{"serve"}})
}
