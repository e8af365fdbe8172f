package bridge

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
)

type schemaKey struct{}

// ask takes a question to the client of before 2026-07-28 that s is for, and returns the
// answer as it is. The SDK would fail for schemas that it does not know, after the user
// has answered, and for answers that do not fit; both are checked elsewhere, so it is not
// shown the schema. The server has to send through [withSchema].
func (c display) ask(ctx context.Context, s *mcp.ServerSession, q *consent.Question) (*mcp.ElicitResult, error) {
	p := c.elicitation(q)
	if p.RequestedSchema != nil {
		ctx = context.WithValue(ctx, schemaKey{}, p.RequestedSchema)
		p.RequestedSchema = nil
	}
	return s.Elicit(inWords{ctx}, p)
}

// inWords is a context whose error is its cause: when it ends, the SDK tells the client the
// text of the error as the reason why the form is taken back.
type inWords struct{ context.Context }

// Err implements context.Context.
func (c inWords) Err() error {
	err := c.Context.Err()
	if cause := context.Cause(c.Context); err != nil && cause != nil && !errors.Is(err, cause) {
		return &wordedError{cause, err}
	}
	return err
}

// A wordedError has the text of a cause, and is also the error of a context.
type wordedError struct{ cause, err error }

func (e *wordedError) Error() string   { return e.cause.Error() }
func (e *wordedError) Unwrap() []error { return []error{e.cause, e.err} }

// withSchema is a middleware for sending that adds the schema of a question from ask.
func withSchema(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		p, isForm := req.GetParams().(*mcp.ElicitParams)
		s, ofServer := req.GetSession().(*mcp.ServerSession)
		schema := ctx.Value(schemaKey{})
		if schema == nil || !isForm || !ofServer {
			return next(ctx, method, req)
		}
		whole := *p // the SDK looks at p again
		whole.RequestedSchema = schema
		return next(ctx, method, &mcp.ServerRequest[*mcp.ElicitParams]{Session: s, Params: &whole})
	}
}
