package bridge

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
)

// inputKey is the key of a question in a result. What a server asks has the server's, as
// if it were connected directly.
func inputKey(q *consent.Question) string {
	if q.Form != nil && q.Form.Key != "" {
		return q.Form.Key
	}
	return "approval"
}

// inputRequired is the result that asks, with a ticket to come back with.
func (c *call) inputRequired(r *run.Run, q *consent.Question) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:       []mcp.Content{}, // nil is null, which is no content
		InputRequests: mcp.InputRequestMap{inputKey(q): c.display.elicitation(q)},
		RequestState:  r.Ticket(q, c.digest),
	}
}

// resumeWithAnswer finds the run that a call with a ticket (requestState) belongs to, and
// takes the answer that it brings. c.back is true if the model passed the question's ID itself.
// The error is a run.EndedError if the outcome of the run is known, otherwise a protocol error.
func (c *call) resumeWithAnswer() (*run.Run, error) {
	r, q, err := c.server.runs.Redeem(&c.connection.client, c.request.Params.RequestState, c.digest)
	if errors.Is(err, run.ErrTicket) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	res, _ := c.request.Params.InputResponses[inputKey(q)].(*mcp.ElicitResult)
	if answer, ok := answerOf(q, res); ok {
		_ = c.server.runs.Queue().Decide(q.ID, answer) // it may have been answered elsewhere, or have expired
	} else if res != nil && res.Action == "cancel" {
		c.showing = q.ID
	}
	return r, nil
}
