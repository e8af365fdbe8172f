package installer

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// planMove finds the servers that can be moved, and counts the tokens that this saves.
func (c *change) planMove(ctx context.Context) error {
	if c.target.Project {
		return console.Usagef("--move-servers is for your own file: servers of a project belong to all who work on it")
	}
	var err error
	if c.move, err = c.target.PlanMove(c.file.after, c.Values.Of(c.target.File)); err != nil {
		return fmt.Errorf("%s %w", c.target.File, err)
	}
	if len(c.move.Servers) == 0 {
		if !c.DryRun { // which shows it
			c.reportMove(c.Streams.Err)
		}
		return nil
	}
	if c.moved, err = openEdited(c.target.MovedFile()); err != nil {
		return err
	}
	if c.file.after, c.moved.after, err = c.target.MoveOut(c.file.after, c.moved.after, c.move.ByDir()); err != nil {
		return err
	}
	c.cost = c.countTokens(ctx)
	return nil
}

// confirmMove shows the move and asks for confirmation.
func (c *change) confirmMove(ctx context.Context) error {
	if c.Yes {
		c.reportMove(c.Streams.Err)
		return nil
	}
	if !console.Terminal(c.Streams.In) || !console.Terminal(c.Streams.Err) {
		return console.Invalidf("nothing was moved: there is no terminal to ask on; look with --dry-run, then add --yes")
	}
	if err := c.show(c.Streams.Err); err != nil {
		return err
	}
	whose := c.target.Title
	if c.older {
		whose = c.target.File
	}
	fmt.Fprintf(c.Streams.Err, "Move %s of %s behind toolcell? [y/N] ", text.Plural(len(c.move.Servers), "server"), whose)
	answer, err := console.ReadLine(ctx, c.Streams.In)
	if err != nil || !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return &console.ExitError{Code: console.ExitFail, Err: fmt.Errorf("nothing was changed")}
	}
	return nil
}

// reportMove prints which servers move, and which stay and why.
func (c *change) reportMove(w io.Writer) {
	if c.MoveServers && len(c.move.Servers) == 0 && !c.older {
		fmt.Fprintf(w, "there are no servers to move in %s\n", c.target.File)
	}
	for _, stay := range c.move.Stay {
		fmt.Fprintf(w, "stays: %s: %s\n", stay.Server, stay.Reason)
	}
	for _, m := range c.move.Servers {
		if len(m.Variables) > 0 {
			fmt.Fprintf(w, "note: %s needs %s: if %s does not pass it on to toolcell, keep it with toolcell servers set %s\n",
				m.Name, strings.Join(m.Variables, " and "), c.target.Title, m.Name)
		}
	}
}
