// Package elicitation reads the elicitations of servers during a call, and checks the user's
// answers (MCP specification, Elicitation).
//
// Elicitations are untrusted: they are bounded, their texts lose invisible characters, and a
// form has only the flat fields that the specification allows. An answer goes to the server
// only if it fits the form. The package does not ask the user itself.
package elicitation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// Method is the method of an elicitation.
const Method = "elicitation/create"

// The modes of a request.
const (
	Form = "form"
	URL  = "url"
)

// Capabilities are the modes that a client can show to the user.
type Capabilities struct {
	Form, URL bool
	// ByRequest says that the client takes requests of servers, as clients did before
	// 2026-07-28. Some servers that know the later protocol ask in no other way.
	ByRequest bool
}

// Both returns the capabilities that c and other share.
func (c Capabilities) Both(other Capabilities) Capabilities {
	return Capabilities{Form: c.Form && other.Form, URL: c.URL && other.URL, ByRequest: c.ByRequest && other.ByRequest}
}

// Any reports whether the user can be asked at all.
func (c Capabilities) Any() bool { return c.Form || c.URL }

// ForSession returns the capabilities of a client as a server is told them at the
// beginning of a session: these and no others.
func (c Capabilities) ForSession() *mcp.ClientCapabilities {
	var told mcp.ClientCapabilities
	if c.Any() {
		told.Elicitation = &mcp.ElicitationCapabilities{}
	}
	if c.Form {
		told.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if c.URL {
		told.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	return &told
}

// ForRequest is ForSession for the metadata of one request. The SDK's type would add
// roots.
func (c Capabilities) ForRequest() map[string]any {
	if !c.Any() {
		return map[string]any{}
	}
	return map[string]any{"elicitation": c.ForSession().Elicitation}
}

// A Request is an elicitation of a server during a call.
type Request struct {
	Server, Tool string          // of the call; Tool is empty for a resource or a prompt
	Mode         string          // Form or URL
	Message      string          // why, in the words of the server
	Schema       json.RawMessage // of the answer, as the server wrote it; nil with a URL
	URL, ID      string          // ID is empty from 2026-07-28 on
	Key          string          // by which the server knows it; empty before 2026-07-28
}

// Bounds of a request, in bytes.
const (
	maxMessage = 8 << 10
	maxSchema  = 64 << 10
	maxURL     = 4 << 10
	maxID      = 256
)

// Read reads the parameters of a request whose server is told these capabilities, and
// takes the secrets of the server's entry out of it.
func Read(params json.RawMessage, can Capabilities, secrets *redact.Redactor) (Request, error) {
	members, err := rawjson.Members(params)
	if err != nil {
		return Request{}, fmt.Errorf("what the server asks for %w", err)
	}
	r := Request{Mode: Form}
	for _, m := range []struct {
		name string
		into *string
	}{{"mode", &r.Mode}, {"message", &r.Message}, {"url", &r.URL}, {"elicitationId", &r.ID}} {
		raw, given := rawjson.Find(members, m.name)
		if given && json.Unmarshal(raw, m.into) != nil {
			return Request{}, fmt.Errorf("its %q is not text", m.name)
		}
	}
	if raw, given := rawjson.Find(members, "requestedSchema"); given && !rawjson.IsNull(raw) {
		r.Schema = raw
	}
	if err := r.checkMode(can); err != nil {
		return Request{}, err
	}
	r.Message = text.Bound(secrets.Text(text.Clean(r.Message)), maxMessage)
	if r.Mode == URL {
		return r, r.checkURL(secrets)
	}
	if len(r.Schema) > maxSchema {
		return Request{}, fmt.Errorf("its form is longer than %d KiB", maxSchema>>10)
	}
	if r.Schema, err = cleanSchema(r.Schema); err == nil { // first: what cannot be seen may divide a secret
		r.Schema, err = secrets.JSON(r.Schema)
	}
	if err == nil {
		_, err = readForm(r.Schema)
	}
	if err != nil {
		return Request{}, fmt.Errorf("its form: %w", err)
	}
	return r, nil
}

// checkMode refuses what the client cannot show: a server must not ask for a mode that
// was not declared.
func (r Request) checkMode(can Capabilities) error {
	switch {
	case r.Mode != Form && r.Mode != URL:
		return fmt.Errorf("its mode %q is unknown", text.Printable(r.Mode, 40))
	case r.Mode == Form && !can.Form, r.Mode == URL && !can.URL:
		return fmt.Errorf("its mode %q is not among those that the client has", r.Mode)
	case r.Mode == Form && r.URL != "":
		return errors.New("it has a form and an address")
	case r.Mode == Form && r.Schema == nil:
		return errors.New("it has no form")
	case r.Mode == URL && r.Schema != nil:
		return errors.New("it has an address and a form")
	}
	return nil
}

// checkURL refuses an address that does not show where it leads. It is never cut: the
// user decides by its host.
func (r Request) checkURL(secrets *redact.Redactor) error {
	if len(r.URL) > maxURL {
		return fmt.Errorf("its address is longer than %d KiB", maxURL>>10)
	}
	if strings.ContainsFunc(r.URL, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return errors.New("its address has characters that are not printable ASCII")
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("its address is not one of http or https")
	case u.User != nil: // https://bank.example@evil.example
		return errors.New("its address has a user name before the host")
	}
	if name := secrets.Secret(r.URL); name != "" {
		return fmt.Errorf("its address holds %s of the server's entry", name)
	}
	if len(r.ID) > maxID || strings.ContainsFunc(r.ID, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("its elicitationId is longer than %d bytes or not printable", maxID)
	}
	return nil
}

// A Reply is the user's answer.
type Reply struct {
	Action  string          // accept, decline or cancel
	Content json.RawMessage // what was entered in the form, with accept
}

// A Result is a reply as the server gets it.
type Result struct{ mcp.ElicitResult }

// MarshalJSON writes the content of a form in which nothing was entered, which the SDK
// leaves out. Servers of the Python SDK take an accept without content for an error.
func (r *Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content,omitzero"`
	}{r.Action, r.Content})
}

// ForServer returns the reply for the server, or an error if it does not fit the form. Values
// stay as they were entered: numbers are not decoded.
func (r Request) ForServer(reply Reply) (*Result, error) {
	result := &Result{mcp.ElicitResult{Action: reply.Action}}
	switch reply.Action {
	case "decline", "cancel":
		return result, nil
	case "accept":
	default:
		return nil, fmt.Errorf("the answer is %q and not accept, decline or cancel", text.Printable(reply.Action, 40))
	}
	if r.Mode == URL {
		return result, nil // what is entered there does not pass through here
	}
	f, err := readForm(r.Schema)
	if err != nil {
		return nil, err
	}
	entered, err := f.check(reply.Content)
	if err != nil {
		return nil, fmt.Errorf("what was entered does not fit the form: %w", err)
	}
	result.Content = entered
	return result, nil
}
