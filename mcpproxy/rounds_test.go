package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// asksFor is a result of 2026 that asks for input.
func asksFor(state, requests string) string {
	return `{"resultType":"input_required","requestState":` + state + `,"inputRequests":{` + requests + `}}`
}

func form(key string) string {
	return `"` + key + `":{"method":"elicitation/create","params":` + plainForm + `}`
}

// TestResultsMayAskForInput in the manner of 2026-07-28, over several rounds: the
// request is repeated with the same arguments, and the state of the server.
func TestResultsMayAskForInput(t *testing.T) {
	s, notes := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	u := entering(`{"name":"Ada"}`)
	states := []string{`"v1.{\"n\":1}/+=~'"`, `"a\"b\\c/é\ud83d\ude00<&>\u2028"`, `"` + strings.Repeat("x", 100_000) + `"`}
	// The arguments are a script of the server, and hold numbers and white space to keep.
	args := `{"n": 9007199254740993, "rounds":[` + asksFor(states[0], form("z")+","+form("a")) + "," + asksFor(states[1], form("b")) + "," + asksFor(states[2], form("c")) + `]}`
	res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "run", Arguments: json.RawMessage(args), User: u, Can: ElicitCapabilities{Form: true}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(res.JSON), `"answers"`) || len(u.asked) != 4 {
		t.Errorf("got %s after %d questions", res.JSON, len(u.asked))
	}
	type params struct {
		Arguments      json.RawMessage
		RequestState   *string
		InputResponses map[string]json.RawMessage
		Meta           map[string]json.RawMessage `json:"_meta"`
	}
	calls := received(notes, "tools/call")
	if len(calls) != 4 {
		t.Fatalf("the server was called %d times", len(calls))
	}
	ids := map[string]bool{}
	var first json.RawMessage
	for i, line := range calls {
		var call struct {
			ID     json.RawMessage
			Params params
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatal(err)
		}
		ids[string(call.ID)] = true
		if i == 0 {
			first = call.Params.Arguments
		}
		if string(call.Params.Arguments) != string(first) || !strings.Contains(string(first), `"n":9007199254740993`) {
			t.Errorf("call %d has other arguments: %.200s", i, call.Params.Arguments)
		}
		if got := string(call.Params.Meta[mcp.MetaKeyClientCapabilities]); got != `{"elicitation":{"form":{}}}` {
			t.Errorf("call %d says that the client can %s", i, got)
		}
		if i == 0 {
			if call.Params.RequestState != nil || call.Params.InputResponses != nil {
				t.Errorf("the first call has %s", line)
			}
			continue
		}
		var want string
		if err := json.Unmarshal([]byte(states[i-1]), &want); err != nil || call.Params.RequestState == nil || *call.Params.RequestState != want {
			t.Errorf("call %d returns another state: %.200s", i, line)
		}
		if i != 2 && !strings.Contains(line, `"requestState":`+states[i-1]) { // the second has what JSON may write in two ways
			t.Errorf("call %d writes the state in another way: %.200s", i, line)
		}
		answer := string(call.Params.InputResponses[string("zbc"[i-1])])
		if answer != `{"action":"accept","content":{"name":"Ada"}}` || (i == 1) != (len(call.Params.InputResponses) == 2) {
			t.Errorf("call %d answers %s", i, call.Params.InputResponses)
		}
	}
	if len(ids) != 4 {
		t.Errorf("ids are used again: %v", ids)
	}
}

// TestServersThatAskWithoutEndAreRefused, and those that ask for what is not offered or
// cannot be shown.
func TestServersThatAskWithoutEndAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	for name, tt := range map[string]struct {
		round  string
		rounds int
		calls  int // that the server gets
		asked  int
		said   string
	}{
		"without end":    {asksFor(`"s"`, form("k")), 20, 11, 10, "asked for input 10 times"},
		"only for time":  {asksFor(`"s"`, ``), 20, 4, 0, "put the request off 4 times"},
		"sampling":       {asksFor(`"s"`, form("a")+`,"k":{"method":"sampling/createMessage","params":{}}`), 1, 1, 0, `"sampling/createMessage", which is not offered`},
		"roots":          {asksFor(`"s"`, `"k":{"method":"roots/list"}`), 1, 1, 0, `"roots/list", which is not offered`},
		"no form":        {asksFor(`"s"`, `"k":{"method":"elicitation/create","params":{"message":"m"}}`), 1, 1, 0, "it has no form"},
		"nested":         {asksFor(`"s"`, `"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}}`), 1, 1, 0, "is not string, number"},
		"state too long": {asksFor(`"`+strings.Repeat("s", 1<<20)+`"`, form("k")), 1, 1, 0, "requestState is longer"},
		"half a pair":    {asksFor(`"HALF PAIR"`, form("k")), 1, 1, 0, "cannot be returned unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, notes := asker(t, "2026")
			p := proxyFor(t, Options{}, s)
			u := entering(`{"name":"Ada"}`)
			args := `{"rounds":[` + strings.TrimSuffix(strings.Repeat(tt.round+",", tt.rounds), ",") + `]}`
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "run", Arguments: json.RawMessage(args), User: u, Can: both})
			mcptest.WantError(t, err, `calling tool "run" of server "fake"`, tt.said)
			if calls := received(notes, "tools/call"); len(calls) != tt.calls || len(u.asked) != tt.asked {
				t.Errorf("the server was called %d times, the user was asked %d times", len(calls), len(u.asked))
			}
		})
	}
}

// TestAQuestionThatCannotBeShownIsTheServersFault, but no error that it gave.
func TestAQuestionThatCannotBeShownIsTheServersFault(t *testing.T) {
	s, _ := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	u := entering(`{"name":"Ada"}`)
	noForm := asksFor(`"s"`, `"k":{"method":"elicitation/create","params":{"message":"m"}}`)
	_, err := callAsking(t, p, u, `{"rounds":[`+noForm+`]}`)
	const want = `calling tool "run" of server "fake": the server asks for input: the user cannot be asked this: it has no form`
	if err == nil || err.Error() != want || SaidByServer(err) || len(u.asked) > 0 {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestKeysOfServersGoToTheClient: but no text that a key could carry.
func TestKeysOfServersGoToTheClient(t *testing.T) {
	for key, want := range map[string]string{
		"user_name": "user_name", "step.1": "step.1", "a/b:c-d": "a/b:c-d",
		"": "", "two words": "", "![x](http://e)": "", "é": "", "k\\u001b": "", strings.Repeat("k", 65): "", "the-hidden-token": "",
	} {
		s, _ := asker(t, "2026")
		s.Env["ASKER_TOKEN"] = "hidden-token"
		u := entering(`{"name":"Ada"}`)
		p := proxyFor(t, Options{}, s)
		p.SetElicits(both)
		if _, err := callAsking(t, p, u, `{"rounds":[`+asksFor(`"s"`, form(key))+`]}`); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if len(u.asked) != 1 || u.asked[0].Key != want {
			t.Errorf("%q became %+v", key, u.asked)
		}
	}
}

// TestBusyServersAreGivenTime: the same request again, with the state.
func TestBusyServersAreGivenTime(t *testing.T) {
	s, notes := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	if _, err := callAsking(t, p, nil, `{"rounds":[{"resultType":"input_required","requestState":"later"}]}`); err != nil {
		t.Fatal(err)
	}
	if calls := received(notes, "tools/call"); len(calls) != 2 || !strings.Contains(calls[1], `"requestState":"later"`) {
		t.Errorf("the server got %s", calls)
	}
}

// TestWithoutAUserServersOf2026AreTold so, with each call.
func TestWithoutAUserServersOf2026AreTold(t *testing.T) {
	s, notes := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	_, err := callAsking(t, p, nil, `{"rounds":[`+asksFor(`"s"`, form("k"))+`]}`)
	mcptest.WantError(t, err, "asks the user for input, who cannot be asked here")
	var call struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(received(notes, "tools/call")[0]), &call); err != nil {
		t.Fatal(err)
	}
	if got := string(call.Params.Meta[mcp.MetaKeyClientCapabilities]); got != `{}` {
		t.Errorf("the server was told %s", got)
	}
}

// TestPromptsAndResourcesMayAskToo: the context says who answers.
func TestPromptsAndResourcesMayAskToo(t *testing.T) {
	for what, do := range map[string]func(context.Context, *Proxy, ...User) (json.RawMessage, error){
		"prompts/get": func(ctx context.Context, p *Proxy, u ...User) (json.RawMessage, error) {
			return p.read(ctx, "fake", GetPrompt, "p", json.RawMessage(`{"a":"b"}`), u...)
		},
		"resources/read": func(ctx context.Context, p *Proxy, u ...User) (json.RawMessage, error) {
			return p.read(ctx, "fake", ReadResource, "fake://1", nil, u...)
		},
	} {
		s, notes := asker(t, "2026")
		p := proxyFor(t, Options{}, s)
		u := entering(`{"name":"Ada"}`)
		if _, err := do(t.Context(), p, u); err != nil {
			t.Fatal(err)
		}
		asked := received(notes, what)
		if len(asked) != 2 || !strings.Contains(asked[1], `"name":"Ada"`) || !strings.Contains(asked[1], `"requestState":"s"`) || len(u.asked) != 1 || u.asked[0].Tool != "" {
			t.Errorf("%s: the server got %s; the user was asked %+v", what, asked, u.asked)
		}
		s, _ = asker(t, "2026")
		p = proxyFor(t, Options{}, s)
		_, err := do(t.Context(), p)
		mcptest.WantError(t, err, "asks the user for input, who cannot be asked here")
	}
}

// askingTool adds a tool to a server of the SDK that asks in the manner of the session.
func askingTool(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		params := &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}
		answer, _ := r.Params.InputResponses["who"].(*mcp.ElicitResult)
		if init := r.Session.InitializeParams(); answer == nil && init != nil && init.ProtocolVersion < "2026" {
			var err error
			if answer, err = r.Session.Elicit(ctx, params); err != nil {
				return nil, err
			}
		}
		if answer == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": params}, RequestState: "s1"}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, " ", answer.Content["name"], " ", r.Params.RequestState)}}}, nil
	})
}

// TestRemoteServersAskToo, over every transport.
func TestRemoteServersAskToo(t *testing.T) {
	kindsOfWeb(t, func(t *testing.T, _ *noteBook, s config.Server) {
		p := proxyFor(t, Options{}, s)
		p.SetElicits(both)
		u := entering(`{"name":"Ada"}`)
		res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "ask", User: u, Can: both})
		if err != nil || !strings.Contains(string(res.JSON), "accept Ada") || len(u.asked) != 1 {
			t.Errorf("%s, %v; the user was asked %+v", res.JSON, err, u.asked)
		}
	})
}
