package ongoing

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/form"
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
func (rs *Runs[R]) inputRequired(r *Run[R], q *consent.Question, c *Call) *mcp.CallToolResult {
	rs.park(r, q)
	t := consent.Ticket{
		Question: q.ID, Run: q.Run, Nonce: rand.Text(), Digest: c.digest, Expires: q.ExpiresAt,
	}
	r.mu.Lock()
	r.nonce = t.Nonce
	r.mu.Unlock()
	return &mcp.CallToolResult{
		Content:       []mcp.Content{}, // nil is null, which is no content
		InputRequests: mcp.InputRequestMap{inputKey(q): c.Client.Elicitation(q)},
		RequestState:  rs.sealer.Seal(t),
	}
}

// ComeBackWithAnswer finds the run that a call with a ticket (requestState) belongs to, and
// takes the answer that it brings. A ticket counts once, for the same request, on the
// connection that began its run. back says that a model has come back with an ID. The error is an EndedError if it is known what became of
// the run, and else one of the protocol.
func (rs *Runs[R]) ComeBackWithAnswer(c *Call, back bool) (*Run[R], error) {
	c.back = back
	t, id, err := rs.sealer.Open(c.request.Params.RequestState)
	r, unknown := rs.waiting(c.Connection, id)
	if ended, ok := errors.AsType[*EndedError](unknown); ok {
		return nil, ended // the ID is enough to be told: another process may have made the ticket
	}
	if err != nil || unknown != nil || t.Digest != c.digest || !r.use(t.Nonce) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: consent.ErrTicket.Error()}
	}
	q, ok := rs.desk.Question(t.Question)
	res, _ := c.request.Params.InputResponses[inputKey(&q)].(*mcp.ElicitResult)
	if ok && t.Run == q.Run && time.Now().Before(t.Expires) {
		if answer, ok := form.Answer(&q, res); ok {
			_ = rs.desk.Decide(q.ID, answer) // it may have been answered elsewhere, or have expired
		} else if res != nil && res.Action == "cancel" {
			c.showing = q.ID
		}
	}
	return r, nil
}

// use takes a ticket, if it is the one that counts.
func (r *Run[R]) use(nonce string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if nonce == "" || r.nonce != nonce {
		return false
	}
	r.nonce = ""
	return true
}
