package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// both are the ways of a client that can show all.
var both = ElicitCapabilities{Form: true, URL: true}

// user answers what servers ask.
type user struct {
	mu    sync.Mutex
	asked []Elicitation
	reply ElicitationReply
	err   error
}

func (u *user) Elicit(_ context.Context, e Elicitation) (ElicitationReply, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, e)
	return u.reply, u.err
}

// entering is a user who enters this in every form.
func entering(content string) *user {
	return &user{reply: ElicitationReply{Action: "accept", Content: json.RawMessage(content)}}
}

func callAsking(t *testing.T, p *Proxy, u *user, args string) (string, error) {
	t.Helper()
	r := CallRequest{Server: "fake", Tool: "run", Arguments: json.RawMessage(args)}
	if u != nil {
		r.User, r.Can = u, p.elicitsNow()
	}
	res, err := p.Call(t.Context(), r)
	return string(res.JSON), err
}

type askedResult struct {
	Answers      []json.RawMessage
	Capabilities json.RawMessage
	Pid          int
}

// TestServersAskDuringACall in the manner of before 2026-07-28: the form comes in the
// server's order, and what was entered goes back to the digit.
func TestServersAskDuringACall(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	u := entering(`{"z":"Ada","a":9007199254740993,"n":1.50,"ok":true,"color":"red","many":["x"],"old":"b"}`)
	schema := `{"type":"object","properties":{"z":{"type":"string","title":"Na\u202eme","minLength":1},"a":{"type":"integer"},"n":{"type":"number","maximum":2},` +
		`"ok":{"type":"boolean","default":false},"color":{"type":"string","oneOf":[{"const":"red","title":"Red\u200b"}]},` +
		`"many":{"type":"array","items":{"type":"string","enum":["x","y"]}},"old":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}},"required":["z"]}`
	raw, err := callAsking(t, p, u, `{"asks":[{"message":"Please\u001b[31m fill","requestedSchema":`+schema+`}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got := structured[askedResult](t, raw)
	want := `{"action":"accept","content":{"a":9007199254740993,"color":"red","many":["x"],"n":1.50,"ok":true,"old":"b","z":"Ada"}}`
	if len(got.Answers) != 1 || string(got.Answers[0]) != want {
		t.Errorf("the server got %s, want %s", got.Answers, want)
	}
	if string(got.Capabilities) != `{"elicitation":{"form":{},"url":{}}}` {
		t.Errorf("the server was told %s", got.Capabilities)
	}
	e := u.asked[0]
	cleaned := strings.NewReplacer(`\u202e`, "", `\u200b`, "").Replace(schema)
	if e.Server != "fake" || e.Tool != "run" || e.Mode != "form" || e.Message != "Please fill" || string(e.Schema) != cleaned {
		t.Errorf("the user was asked %+v, schema %s\nwant %s", e, e.Schema, cleaned)
	}
}

// TestAnswersThatDoNotFitAreNotSent, and the server is told why it gets none.
func TestAnswersThatDoNotFitAreNotSent(t *testing.T) {
	for _, era := range []string{"2025", "2026"} {
		s, notes := asker(t, era)
		p := proxyFor(t, Options{}, s)
		p.SetElicits(both)
		args := `{"asks":[` + plainForm + `]}`
		if era == "2026" {
			args = `{"rounds":[{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":` + plainForm + `}}}]}`
		}
		raw, err := callAsking(t, p, entering(`{"name":7}`), args)
		said := raw
		if err != nil {
			said = err.Error()
		}
		if want := `does not fit the form`; !strings.Contains(said, want) || !strings.Contains(said, "is not text") {
			t.Errorf("%s: %s", era, said)
		}
		if (err == nil) != (era == "2025") || strings.Contains(strings.Join(lines(notes), ""), `"accept"`) {
			t.Errorf("%s: error %v; the server received %s", era, err, lines(notes))
		}
	}
}

// TestQuestionsOfACallHaveAnEnd, whatever is answered.
func TestQuestionsOfACallHaveAnEnd(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	u := &user{reply: ElicitationReply{Action: "cancel"}}
	raw, err := callAsking(t, p, u, `{"asks":[`+strings.Repeat(plainForm+",", maxQuestions+1)+plainForm+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(u.asked); n != maxQuestions || !strings.Contains(raw, "the user was asked 40 times during this request") {
		t.Errorf("the user was asked %d times; the server got %s", n, raw)
	}
}

// TestUsersMayDecline: their answer goes to the server, which says what that means.
func TestUsersMayDecline(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	for _, action := range []string{"decline", "cancel"} {
		raw, err := callAsking(t, p, &user{reply: ElicitationReply{Action: action}}, `{"id":"`+action+`","asks":[`+plainForm+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := structured[askedResult](t, raw).Answers; string(got[0]) != `{"action":"`+action+`"}` {
			t.Errorf("%s: the server got %s", action, got)
		}
	}
}

// TestFormsMayBeLeftEmpty: the server gets content without fields, since without content an
// accept is an error to some.
func TestFormsMayBeLeftEmpty(t *testing.T) {
	const optional = `{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
	for era, args := range map[string]string{
		"2025": `{"asks":[` + optional + `]}`,
		"2026": `{"rounds":[{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":` + optional + `}}}]}`,
	} {
		s, notes := asker(t, era)
		p := proxyFor(t, Options{}, s)
		p.SetElicits(both)
		raw, err := callAsking(t, p, entering(`{}`), args)
		if err != nil {
			t.Fatal(err)
		}
		if got := raw + strings.Join(lines(notes), "\n"); !strings.Contains(got, `{"action":"accept","content":{}}`) {
			t.Errorf("%s: the server received %s", era, got)
		}
	}
}

// TestNobodyIsAskedOutsideOfACall, nor for a call whose caller cannot be asked.
func TestNobodyIsAskedOutsideOfACall(t *testing.T) {
	s, notes := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	u := entering(`{"name":"Ada"}`)
	if _, err := callAsking(t, p, u, `{"late":`+plainForm+`}`); err != nil {
		t.Fatal(err)
	}
	declined := func() bool {
		return slices.ContainsFunc(lines(notes), func(l string) bool {
			return strings.Contains(l, `"id":"late"`) && strings.Contains(l, `{"action":"decline"}`)
		})
	}
	eventually(t, "an answer to the late question", declined)
	raw, err := callAsking(t, p, nil, `{"id":"mute","asks":[`+plainForm+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := structured[askedResult](t, raw).Answers; string(got[0]) != `{"action":"decline"}` {
		t.Errorf("a call without a user got %s", got)
	}
	if len(u.asked) > 0 {
		t.Errorf("the user was asked %+v", u.asked)
	}
}

// TestServersAreToldWhatTheClientCan, neither more nor less, and again when that changes.
func TestServersAreToldWhatTheClientCan(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	pids := map[int]bool{}
	for _, tt := range []struct {
		can  ElicitCapabilities
		told string
	}{
		{ElicitCapabilities{}, `{}`},
		{ElicitCapabilities{Form: true}, `{"elicitation":{"form":{}}}`},
		{ElicitCapabilities{URL: true}, `{"elicitation":{"url":{}}}`},
		{both, `{"elicitation":{"form":{},"url":{}}}`},
		{both, `{"elicitation":{"form":{},"url":{}}}`},
	} {
		p.SetElicits(tt.can)
		raw, err := callAsking(t, p, &user{}, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		got := structured[askedResult](t, raw)
		if string(got.Capabilities) != tt.told {
			t.Errorf("%+v: told %s", tt.can, got.Capabilities)
		}
		pids[got.Pid] = true
	}
	if len(pids) != 4 {
		t.Errorf("%d processes, want one for each change", len(pids))
	}
}

// TestServersThatAskByRequestMayDoSo also if they know the later protocol, in which they
// could not. What they ask in results is asked in that session as well.
func TestServersThatAskByRequestMayDoSo(t *testing.T) {
	s, notes := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	byRequest := both
	byRequest.ByRequest = true
	round := `{"rounds":[null,{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":` + plainForm + `}}}]}`
	for _, tt := range []struct {
		can   ElicitCapabilities
		args  string
		asked int
		begun string // the last session
	}{
		{ElicitCapabilities{}, `{}`, 0, "server/discover"},
		{ElicitCapabilities{ByRequest: true}, `{}`, 0, "server/discover"},
		{byRequest, `{"asks":[` + plainForm + `]}`, 1, "initialize"},
		{byRequest, round, 1, "initialize"},
		{both, `{}`, 0, "server/discover"},
	} {
		p.SetElicits(tt.can)
		u := entering(`{"name":"Ann"}`)
		if _, err := callAsking(t, p, u, tt.args); err != nil {
			t.Fatalf("%+v: %v", tt.can, err)
		}
		if len(u.asked) != tt.asked {
			t.Errorf("%+v: asked %d times", tt.can, len(u.asked))
		}
		if begun := handshakes(notes); begun[len(begun)-1] != tt.begun {
			t.Errorf("%+v: the sessions began with %v", tt.can, begun)
		}
	}
	if begun := handshakes(notes); len(begun) != 3 {
		t.Errorf("the sessions began with %v", begun)
	}
}

// TestServersOfTheLaterProtocolAloneAreAsked in that, whatever the client takes.
func TestServersOfTheLaterProtocolAloneAreAsked(t *testing.T) {
	s, notes := asker(t, "2026 alone")
	p := proxyFor(t, Options{}, s)
	byRequest := both
	byRequest.ByRequest = true
	for _, can := range []ElicitCapabilities{byRequest, byRequest, {}, byRequest} {
		p.SetElicits(can)
		if _, err := callAsking(t, p, entering(`{"name":"Ann"}`), `{}`); err != nil {
			t.Fatal(err)
		}
	}
	if begun := handshakes(notes); !slices.Equal(begun, []string{"initialize", "server/discover"}) {
		t.Errorf("the sessions began with %v", begun)
	}
}

// handshakes returns how the sessions of an asker began, with refused attempts.
func handshakes(notes string) (all []string) {
	data, _ := os.ReadFile(notes)
	for line := range strings.Lines(string(data)) {
		for _, method := range []string{"initialize", "server/discover"} {
			if strings.Contains(line, `"method":"`+method+`"`) {
				all = append(all, method)
			}
		}
	}
	return all
}

// callThatAsks begins a call and returns once its server has asked the user. The user answers, and
// the call ends, with answer.
func callThatAsks(t *testing.T, p *Proxy, can ElicitCapabilities) (answer func()) {
	t.Helper()
	asked, think, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), CallRequest{
			Server: "fake", Tool: "run", Arguments: json.RawMessage(`{"asks":[` + plainForm + `]}`), Can: can,
			User: userFunc(func(context.Context, Elicitation) (ElicitationReply, error) {
				close(asked)
				<-think
				return ElicitationReply{Action: "decline"}, nil
			}),
		})
		done <- err
	}()
	<-asked
	return func() {
		t.Helper()
		close(think)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestCallsInFlightKeepTheirSession when the client changes.
func TestCallsInFlightKeepTheirSession(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	answer := callThatAsks(t, p, both)
	p.SetElicits(ElicitCapabilities{})
	raw, err := callAsking(t, p, nil, `{"id":"second"}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := structured[askedResult](t, raw); string(got.Capabilities) == `{}` {
		t.Error("it was connected anew while a call was in flight")
	}
	answer()
	if raw, err = callAsking(t, p, nil, `{}`); err != nil {
		t.Fatal(err)
	}
	if got := structured[askedResult](t, raw); string(got.Capabilities) != `{}` {
		t.Errorf("the next call finds %s", got.Capabilities)
	}
}

// TestTheOldestCallIsAsked of several in flight that can be.
func TestTheOldestCallIsAsked(t *testing.T) {
	s, _ := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	var first, second user
	first.reply.Action, second.reply.Action = "decline", "cancel"
	begun, wait := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	once := sync.OnceFunc(func() { close(begun); <-wait })
	go func() {
		_, err := p.Call(t.Context(), CallRequest{
			Server: "fake", Tool: "run", Arguments: json.RawMessage(`{"id":"one","asks":[` + plainForm + `,` + plainForm + `]}`), Can: both,
			User: userFunc(func(ctx context.Context, e Elicitation) (ElicitationReply, error) {
				once()
				return first.Elicit(ctx, e)
			}),
		})
		done <- err
	}()
	<-begun
	answered := make(chan error, 1)
	go func() {
		_, err := callAsking(t, p, &second, `{"id":"two","asks":[`+plainForm+`]}`)
		answered <- err
	}()
	close(wait)
	for _, ended := range []chan error{done, answered} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(first.asked)+len(second.asked) < 3 || len(first.asked) < 2 { // more if the first ended while it was asked for the second
		t.Errorf("the first was asked %d times, the second %d", len(first.asked), len(second.asked))
	}
}

// TestTheUsersTimeIsNotTheServers: a limit for calls does not count it.
func TestTheUsersTimeIsNotTheServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	const limit = 2 * time.Second
	for _, era := range []string{"2025", "2026"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			s, _ := asker(t, era)
			s.CallTimeout = limit
			p := proxyFor(t, Options{}, s)
			p.SetElicits(both)
			if _, err := callAsking(t, p, nil, `{}`); err != nil { // it runs
				t.Fatal(err)
			}
			args := `{"id":"a","asks":[` + plainForm + `]}`
			if era == "2026" {
				args = `{"rounds":[null,` + asksFor(`"s"`, form("k")) + `]}`
			}
			_, err := p.Call(t.Context(), CallRequest{
				Server: "fake", Tool: "run", Arguments: json.RawMessage(args), Can: both,
				User: userFunc(func(ctx context.Context, _ Elicitation) (ElicitationReply, error) {
					select {
					case <-ctx.Done():
					case <-time.After(limit + limit/2):
					}
					return ElicitationReply{Action: "decline"}, ctx.Err()
				}),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestErrorsOfAskingAreNotTheServers: it stays connected, whatever they wrap.
func TestErrorsOfAskingAreNotTheServers(t *testing.T) {
	s, _ := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	u := &user{err: fmt.Errorf("the client went away: %w", io.EOF)}
	args := `{"rounds":[{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":` + plainForm + `}}}]}`
	p.SetElicits(both)
	_, err := callAsking(t, p, u, args)
	mcptest.WantError(t, err, `calling tool "run" of server "fake"`, "the client went away")
	if errors.Is(err, ErrCallLost) || !errors.Is(err, u.err) || p.Servers()[0].Status != "ready" {
		t.Errorf("%v; the server is %s", err, p.Servers()[0].Status)
	}
}

const address = `{"mode":"url","elicitationId":"e1","url":"https://auth.example/login?x=1","message":"Log in"}`

// TestAnAddressIsVisitedAndTheCallRepeated once, when the server says that the user is
// done there.
func TestAnAddressIsVisitedAndTheCallRepeated(t *testing.T) {
	s, notes := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	p.SetElicits(both)
	u := &user{reply: ElicitationReply{Action: "accept"}}
	if _, err := callAsking(t, p, u, `{"visit":{"elicitations":[`+address+`]},"complete":"e1"}`); err != nil {
		t.Fatal(err)
	}
	if len(u.asked) != 1 || u.asked[0].URL != "https://auth.example/login?x=1" || u.asked[0].ID != "e1" || u.asked[0].Schema != nil {
		t.Errorf("the user was asked %+v", u.asked)
	}
	if calls := received(notes, "tools/call"); len(calls) != 2 {
		t.Errorf("the server was called %d times", len(calls))
	}

	s, notes = asker(t, "2025")
	p = proxyFor(t, Options{}, s)
	p.SetElicits(both)
	_, err := callAsking(t, p, &user{reply: ElicitationReply{Action: "decline"}}, `{"visit":{"elicitations":[`+address+`]}}`)
	mcptest.WantError(t, err, "to open an address", "decline")
	if calls := received(notes, "tools/call"); len(calls) != 1 {
		t.Errorf("the server was called %d times", len(calls))
	}
}

// TestAnAddressIsAskedForAgain when the server does not say that the user is done, and
// refuses the call as before: it does so three times.
func TestAnAddressIsAskedForAgain(t *testing.T) {
	s, notes := asker(t, "2025")
	s.Env["FAKE_VISITS"] = "100"
	p := proxyFor(t, Options{openTimeout: time.Millisecond}, s)
	p.SetElicits(both)
	u := &user{reply: ElicitationReply{Action: "accept"}}
	_, err := callAsking(t, p, u, `{"visit":{"elicitations":[`+address+`]}}`)
	mcptest.WantError(t, err, "log in first")
	if calls := received(notes, "tools/call"); len(calls) != 4 || len(u.asked) != 3 {
		t.Errorf("the server was called %d times, the user asked %d times", len(calls), len(u.asked))
	}
	for said, data := range map[string]string{
		"names none": `{"elicitations":[]}`, "but names none": `[]`, "is not one of http": `{"elicitations":[{"mode":"url","url":"file:///etc/passwd","message":"m"}]}`,
		"not among those": `{"elicitations":[` + plainForm + `]}`,
	} {
		_, err := callAsking(t, p, u, `{"visit":`+data+`}`)
		mcptest.WantError(t, err, said)
	}
	if len(u.asked) != 3 {
		t.Errorf("the user was asked %+v", u.asked[3:])
	}
}
