package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

const (
	maxRounds    = 10 // of questions in one request
	maxQuestions = 40 // of one request, in all rounds
	maxWaits     = 3  // how often a server may ask for more time
	maxOpens     = 3  // of addresses, in one request
	maxAddresses = 8  // in one error
)

// An exchange is one request, with what the server asks the user before it gives a result.
//
//	before 2026-07-28    the server sends a request of its own (answerAll), or refuses
//	                     until the user has opened an address (openAddresses)
//	since 2026-07-28     the result asks, and the request is sent again with the answer
//	                     (rounds); some servers do so in an older session too
type exchange struct {
	request
	u       *upstream
	session *transport.Session
	can     ElicitCapabilities // of the user, in this request
	left    *deadline.Deadline
	asked   atomic.Int32
}

// send sends a request over s, and answers what the server asks before it gives a result.
func (r request) send(ctx context.Context, u *upstream, s *transport.Session, left *deadline.Deadline, params *transport.Params) (reply message.Reply, err error) {
	ctx, end := r.export(ctx, u, s)
	defer func() { end(reply, err) }()
	x := &exchange{request: r, u: u, session: s, left: left}
	if x.user != nil {
		x.can = r.want.Can
		if s.Legacy() { // it may ask only in the ways that it was told of
			x.can = x.can.Both(s.Elicits())
		}
	}
	params.Elicits = x.can
	r.sent.Store(true)
	if s.Legacy() {
		if r.user == nil {
			return s.Request(ctx, r.want.Method, params)
		}
		params.Questions = message.NewQuestions()
		var work sync.WaitGroup
		work.Go(contain.Func("answering the questions of a server", func() { x.answerAll(params.Questions) }))
		defer work.Wait()
		defer close(params.Questions)
	}
	for opens := 0; ; opens++ {
		reply, err := x.rounds(ctx, params)
		var refused *jsonrpc.Error
		if !s.Legacy() || !x.can.URL || opens == maxOpens || !errors.As(err, &refused) || refused.Code != mcp.CodeURLElicitationRequired {
			return reply, err
		}
		if err := x.openAddresses(ctx, refused.Data); err != nil {
			return message.Reply{}, err
		}
	}
}

// answerAll answers the requests that the server sends.
func (r *exchange) answerAll(questions message.Questions) {
	for q := range questions.All() {
		var answer json.RawMessage
		err := contain.Call("answering a question of a server", func() error {
			result, err := r.ask(q.Context, "", q.Params)
			if err == nil {
				answer, err = json.Marshal(result)
			}
			return err
		})
		q.Answer(answer, err)
	}
}

// ask asks the user one question, which has a key if it is part of a result. If the
// question cannot be shown, or there are too many, that is the server's fault: the error is
// a *jsonrpc.Error.
func (r *exchange) ask(ctx context.Context, key string, params json.RawMessage) (*elicitation.Result, error) {
	if r.asked.Add(1) > maxQuestions {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the user was asked %d times during this request, which is the most", maxQuestions)}
	}
	defer r.left.Pause()()
	e, err := readForm(ctx, params, r.can, r.u.secrets)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the user cannot be asked this: " + err.Error()}
	}
	e.Server = r.u.server.Name
	if r.want.Method == CallTool {
		e.Tool = r.facts.Name
	}
	if plainKey().MatchString(key) && r.u.secrets.Secret(key) == "" {
		e.Key = key
	}
	reply, err := r.user.Elicit(ctx, e)
	if err != nil {
		return nil, &askError{err}
	}
	return e.ForServer(reply)
}

// plainKey matches keys that are passed on to the client. Clients may show them anywhere, and
// a server can write anything into its keys.
var plainKey = text.Pattern(`^[A-Za-z0-9_.:/-]{1,64}$`)

// An askError reports that the user gave no answer.
type askError struct{ err error }

func (e *askError) Error() string {
	return "asking the user what the server wants to know: " + e.err.Error()
}
func (e *askError) Unwrap() error { return e.err }

// rounds sends a request until its result asks for nothing more. The arguments stay the
// same; the server's state and the user's answers are sent back.
func (r *exchange) rounds(ctx context.Context, params *transport.Params) (message.Reply, error) {
	next := *params
	for asked, waited := 0, 0; ; {
		reply, err := r.session.Request(ctx, r.want.Method, &next)
		if err != nil || !reply.NeedsInput() {
			return reply, err
		}
		in, err := reply.InputRequired()
		if err != nil {
			return reply, fmt.Errorf("the server asks for input: %w", err)
		}
		next.State, next.Inputs = in.State, nil
		if len(in.Requests) == 0 {
			if waited == maxWaits {
				return reply, fmt.Errorf("the server is too busy: it put the request off %d times", waited+1)
			}
			waited++
			if !pause(ctx, firstPause<<waited) {
				return reply, context.Cause(ctx)
			}
			continue
		}
		if r.user == nil {
			return reply, nil // which is an error to its caller
		}
		if asked++; asked > maxRounds {
			return reply, fmt.Errorf("the server asked for input %d times and gave no result", maxRounds)
		}
		if next.Inputs, err = r.fulfill(ctx, in.Requests); err != nil {
			return reply, err
		}
	}
}

// fulfill asks the user what a result asks for, one after the other.
func (r *exchange) fulfill(ctx context.Context, requests []message.InputRequest) (mcp.InputResponseMap, error) {
	for _, one := range requests { // before the user is asked for nothing
		if one.Method != elicitation.Method {
			return nil, fmt.Errorf("the server asks for %q, which is not offered here", text.Printable(one.Method, 100))
		}
	}
	answers := mcp.InputResponseMap{}
	for _, one := range requests {
		result, err := r.ask(ctx, one.Key, one.Params)
		if refused, ok := err.(*jsonrpc.Error); ok { //nolint:errorlint // one of the user's client is not meant
			err = errors.New(refused.Message)
		}
		if err != nil {
			return nil, fmt.Errorf("the server asks for input: %w", err)
		}
		answers[one.Key] = result
	}
	return answers, nil
}

// openAddresses asks the user to open the addresses in an error of the server, which refuses
// the request until then. It waits a while for the server to report that the user is done;
// not all servers do. If the request is then sent too early, the server refuses it again, and
// the user is asked again.
func (r *exchange) openAddresses(ctx context.Context, data json.RawMessage) error {
	items, err := rawjson.Items(wire.Member(data, "elicitations"))
	if err != nil || len(items) == 0 || len(items) > maxAddresses {
		return fmt.Errorf("the server asks the user to open addresses, but names none or more than %d", maxAddresses)
	}
	for _, params := range items {
		if err := r.openAddress(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

// readForm is elicitation.Read with room for it.
func readForm(ctx context.Context, params json.RawMessage, can ElicitCapabilities, secrets *redact.Redactor) (Elicitation, error) {
	return memory.Decode(ctx, "reading what a server asks", len(params), memory.Form, func() (Elicitation, error) { return elicitation.Read(params, can, secrets) })
}

func (r *exchange) openAddress(ctx context.Context, params json.RawMessage) error {
	e, err := readForm(ctx, params, ElicitCapabilities{URL: true}, r.u.secrets)
	if err != nil {
		return fmt.Errorf("the server asks the user to open an address: %w", err)
	}
	done, stop := r.session.AwaitCompleted(e.ID)
	defer stop()
	result, err := r.ask(ctx, "", params)
	if err != nil {
		return fmt.Errorf("the server asks the user to open an address: %w", err)
	}
	if result.Action != "accept" {
		return fmt.Errorf("the server asks the user to open an address, and the user's answer is %s", result.Action)
	}
	defer r.left.Pause()()
	select {
	case <-done:
	case <-time.After(r.u.proxy.options.openTimeout):
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.session.Down():
	}
	return nil
}
