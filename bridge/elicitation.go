package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
)

// Versions of the protocol that ask in different ways.
const (
	titledChoices = "2025-11-25" // has titles of choices by oneOf
	resultsAsk    = "2026-07-28" // has no requests from servers: they are in results
)

// A display is what the client of one request can show.
type display struct {
	form, url  bool
	multiRound bool // questions are in results, and answers in the next request
	titled     bool
}

// displayOf returns what the client of a call can show.
func displayOf(call *mcp.CallToolRequest) display {
	version := call.ProtocolVersion()
	c := display{multiRound: version >= resultsAsk, titled: version >= titledChoices}
	if caps := call.ClientCapabilities(); caps != nil && caps.Elicitation != nil {
		c.url = caps.Elicitation.URL != nil
		// An empty object means forms (MCP specification, Elicitation, Capabilities).
		c.form = caps.Elicitation.Form != nil || !c.url
	}
	return c
}

// canShow reports whether a question can be taken to the client.
func (c display) canShow(q *consent.Question) bool {
	if q.Form != nil && q.Form.URL != "" {
		return c.url
	}
	return c.form
}

// elicitation writes a question as the client gets it.
func (c display) elicitation(q *consent.Question) *mcp.ElicitParams {
	if q.Form != nil && q.Form.URL != "" {
		return &mcp.ElicitParams{Mode: "url", Message: q.Text(), URL: q.Form.URL, ElicitationID: q.Form.ID}
	}
	p := &mcp.ElicitParams{Mode: "form", Message: q.Text()}
	switch {
	case q.Form == nil:
		p.RequestedSchema = c.schema(q)
	case q.Form.Schema != nil: // a nil one would be null
		p.RequestedSchema = q.Form.Schema
	}
	return p
}

// A titledChoice is one of a list, with its title.
type titledChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formChoices returns the choices in the order of a form: the denial comes first. Clients
// highlight or even preselect the first one, so that Enter alone takes it: VS Code's quick pick,
// Codex ("enter to submit") and GitHub Copilot CLI do, and of most others it is not known.
func formChoices(q *consent.Question) []consent.Choice {
	choices := q.Choices()
	if i := slices.Index(choices, consent.Deny); i > 0 {
		choices = slices.Concat(choices[i:i+1], choices[:i], choices[i+1:])
	}
	return choices
}

// An optionalText is a field that may stay empty.
type optionalText struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	MaxLength int    `json:"maxLength"`
}

// maxNumbers is how many characters the numbers of calls have, in a client that counts.
const maxNumbers = 100

// approvalFields are the fields of a question's form, in the order in which clients show them.
type approvalFields struct {
	Choice  map[string]any `json:"choice"`
	Calls   *optionalText  `json:"calls,omitempty"`
	Because optionalText   `json:"because"`
}

// schema is that of an answer: one of the choices, without a default, which of several calls are
// meant, and why the others are denied.
func (c display) schema(q *consent.Question) json.RawMessage {
	choice := map[string]any{"type": "string", "title": "Your decision"}
	var titled []titledChoice
	var values, titles []string
	for _, ch := range formChoices(q) {
		title := q.Title(ch)
		titled = append(titled, titledChoice{string(ch), title})
		values, titles = append(values, string(ch)), append(titles, title)
	}
	if c.titled {
		choice["oneOf"] = titled
	} else {
		choice["enum"], choice["enumNames"] = values, titles
	}
	fields := approvalFields{Choice: choice, Because: optionalText{"string", "If you do not allow it: why?", consent.MaxBecause}}
	if example := q.CallsExample(); example != "" {
		fields.Calls = &optionalText{"string", "Only some of them: their numbers, such as " + example, maxNumbers}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": fields, "required": []string{"choice"}})
	if err != nil {
		panic(err) // texts only
	}
	return schema
}

// answerOf reads what the client answered; ok is false if that decides nothing.
func answerOf(q *consent.Question, res *mcp.ElicitResult) (a consent.Answer, ok bool) {
	if res == nil {
		return a, false
	}
	if q.Form != nil {
		a = consent.Answer{Action: res.Action, Content: res.Content, By: "form"}
		return a, slices.Contains([]string{"accept", "decline", "cancel"}, res.Action)
	}
	if res.Action == "decline" {
		return consent.Answer{Choice: consent.Deny, By: "form"}, true
	}
	if res.Action != "accept" {
		return a, false
	}
	a, err := answerTo(q, res.Content)
	if err == nil && !slices.Contains(q.Choices(), a.Choice) { // also of a stop that the form does not have
		err = errField
	}
	if err == nil {
		a, err = q.Check(a)
	}
	return a, err == nil
}

// errField is of a field that is not as the form has it.
var errField = errors.New("it is no answer to this form")

// answerTo reads the fields of a form that was accepted. A denial counts whatever the optional
// fields have: what is wrong there is left out.
func answerTo(q *consent.Question, fields map[string]any) (consent.Answer, error) {
	choice, isText := fields["choice"].(string)
	a := consent.Answer{Choice: consent.Choice(choice), By: "form"}
	known, wrong := 1, false
	optional := func(name string) string {
		value, given := fields[name]
		s, isText := value.(string)
		if given {
			known++
			wrong = wrong || !isText && value != nil // as some clients send what was left empty
		}
		return strings.TrimSpace(s)
	}
	numbers, said := optional("calls"), optional("because")
	if !isText || known != len(fields) {
		return a, errField
	}
	because, err := consent.Because(said)
	a.Because = because
	if a.Choice == consent.Deny || a.Choice == consent.Stop {
		return a, nil
	}
	if err == nil && wrong {
		err = errField
	}
	if err == nil && numbers != "" {
		a.Calls, err = q.ParseCalls(numbers)
	}
	return a, err
}

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
