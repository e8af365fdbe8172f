package transport

import (
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// Curable reports whether the user can cure a failed start at any moment. Trying again then
// costs nothing and needs no backoff.
func Curable(err error) bool {
	var command *stdio.CommandError
	var failed *remote.Error
	return errors.As(err, &command) || errors.As(err, &failed) && failed.IsCurable()
}

// startError is the error of a server that could not be started or reached.
type startError struct {
	server string
	err    error
}

func (e *startError) Error() string {
	if _, ok := errors.AsType[*stdio.ExitError](e.err); ok {
		return fmt.Sprintf("server %q %s", e.server, e.err)
	}
	return fmt.Sprintf("starting server %q: %s", e.server, e.err)
}
func (e *startError) Unwrap() error { return e.err }

// UnwrapStart returns the error without the name of the server, for a text that has it.
func UnwrapStart(err error) error {
	if start, ok := errors.AsType[*startError](err); ok {
		return start.err
	}
	return err
}

// ExitError returns the error of a server that ended by itself; how describes its end.
func ExitError(server string, how error) error {
	return &startError{server, &stdio.ExitError{Err: how}}
}
