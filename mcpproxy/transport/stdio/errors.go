package stdio

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/text"
)

// CommandError is the error of a server that cannot be launched, which the user can cure at
// any moment.
type CommandError struct{ Err error }

func (e *CommandError) Error() string { return e.Err.Error() }
func (e *CommandError) Unwrap() error { return e.Err }

// ExitError describes the unexpected end of a process.
type ExitError struct{ Err error }

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// notMCP explains the error of a server that does not know the first request of a session.
func notMCP(err error) error {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeMethodNotFound {
		return &notMCPError{wire}
	}
	return err
}

type notMCPError struct{ answer *jsonrpc.Error }

// maxQuoted bounds what the error quotes, in characters.
const maxQuoted = 200

func (e *notMCPError) Error() string {
	return fmt.Sprintf("it does not speak MCP: it answered %q to initialize", text.Printable(e.answer.Message, maxQuoted))
}

func (e *notMCPError) Unwrap() error { return e.answer }
