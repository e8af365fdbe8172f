package mcpproxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// messageTooLongError says that a server sent a message of more than limit bytes.
type messageTooLongError struct{ limit int }

func (e *messageTooLongError) Error() string {
	return fmt.Sprintf("sent a message longer than %d MiB", e.limit>>20)
}

// isLost reports whether err means that the connection broke, in contrast to
// an answer that is an error.
func isLost(err error) bool {
	for _, broken := range []error{mcp.ErrConnectionClosed, io.EOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var long *messageTooLongError
	return errors.As(err, &long)
}

// curableError is the failure of a start that costs nothing to try again, and
// that the user may cure at any moment.
type curableError struct{ err error }

func (e *curableError) Error() string { return e.err.Error() }
func (e *curableError) Unwrap() error { return e.err }

// curable reports whether the user may cure a failed start at any moment, and
// trying again costs nothing: there is no backoff from it.
func curable(err error) bool {
	var cure *curableError
	var refused *httpError
	return errors.As(err, &cure) || errors.As(err, &refused) && refused.login
}

// startError says that a server could not be started or reached.
type startError struct {
	server string
	err    error
}

func (e *startError) Error() string {
	var exited *exitedError
	if errors.As(e.err, &exited) {
		return fmt.Sprintf("server %q %s", e.server, e.err)
	}
	return fmt.Sprintf("starting server %q: %s", e.server, e.err)
}
func (e *startError) Unwrap() error { return e.err }

// unwrapStart takes the name of the server off an error that has it already.
func unwrapStart(err error) error {
	var start *startError
	if errors.As(err, &start) {
		return start.err
	}
	return err
}

// exitedError says how a process ended that should not have.
type exitedError struct{ how string }

func (e *exitedError) Error() string { return e.how }

// ended is the error of a server that ended by itself; how says in what way.
func ended(server, how string) error { return &startError{server, &exitedError{how}} }
