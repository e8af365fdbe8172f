package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// confirm asks a question on the terminal. The error, unless the answer is yes, begins with what was not
// done, such as "nothing was removed".
func confirm(ctx context.Context, o Options, question, undone string) error {
	if o.JSON || !console.Terminal(o.In) || !console.Terminal(o.Err) {
		return console.Invalidf("%s: without a terminal to ask on, %s needs --yes", undone, o.Command)
	}
	fmt.Fprintf(o.Err, "\n%s [y/N] ", question)
	answer, err := console.ReadLine(ctx, o.In)
	if ctx.Err() != nil {
		fmt.Fprintln(o.Err)
		return context.Cause(ctx)
	}
	if err != nil || !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return &console.ExitError{Code: console.ExitFail, Err: errors.New(undone)}
	}
	return nil
}
