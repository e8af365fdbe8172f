package gate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// upstream is a server up, and counts what reaches it.
type upstream struct {
	*mcpproxy.Proxy
	sent  atomic.Int32
	entry config.Server
}

// newUpstream starts a server with these tools beside write and read.
func newUpstream(t *testing.T, more ...string) *upstream {
	t.Helper()
	u := &upstream{}
	count := func(context.Context, json.RawMessage) (string, error) { u.sent.Add(1); return "{}", nil }
	tools := map[string]func(context.Context, json.RawMessage) (string, error){"write": count, "read": count}
	for _, name := range more {
		tools[name] = count
	}
	u.Proxy = bridgetest.Servers{"up": tools}.Proxy(t, bridgetest.Options{
		Read: func(string) { u.sent.Add(1) }, Change: func(s *config.Server) { u.entry = *s },
	})
	return u
}

// changeEntry changes the entry of the server, which leads to the same server.
func (u *upstream) changeEntry() {
	u.entry.Headers = map[string]string{"X-N": u.entry.Headers["X-N"] + "1"}
	u.Update(config.Config{Servers: []config.Server{u.entry}})
}

// A user answers questions.
type user struct {
	*consent.Asker
	queue *consent.Queue
	asked []consent.Question
}

// newUser returns a user who answers so.
func newUser(t *testing.T, answer func(consent.Question) consent.Answer) *user {
	return newUserOf(t, consent.NewQueue(consent.Options{}), nil, answer)
}

// newUserOf is newUser for a run of a client.
func newUserOf(t *testing.T, queue *consent.Queue, client *consent.Client, answer func(consent.Question) consent.Answer) *user {
	u := &user{queue: queue}
	u.Asker = u.queue.Begin(consent.AskerOptions{Client: client, Stop: func(error) {}})
	u.answerWith(t, answer)
	return u
}

// answerWith answers all questions until the test ends.
func (u *user) answerWith(t *testing.T, answer func(consent.Question) consent.Answer) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		u.AnswerWith(context.Background(), done, func(_ context.Context, q consent.Question) consent.Answer {
			u.asked = append(u.asked, q)
			return answer(q)
		})
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
		u.End()
	})
}

// always gives one answer.
func always(c consent.Choice) func(consent.Question) consent.Answer {
	return func(consent.Question) consent.Answer { return consent.Answer{Choice: c} }
}

func policyIn(t *testing.T, text string) *policy.Enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Load(file, true, nil).NewEnforcer()
}

var granted = map[string]bool{"up": true}

// requests are one of each kind, named by its method.
var requests = map[string]Request{
	"tools/call":      {Method: mcpproxy.CallTool, Server: "up", Name: "write", Arguments: json.RawMessage(`{ "n" : 1 }`), Unchecked: true},
	"resources/read":  {Method: mcpproxy.ReadResource, Server: "up", Name: "x://1"},
	"prompts/get":     {Method: mcpproxy.GetPrompt, Server: "up", Name: "p", Arguments: json.RawMessage(`{"n":"1"}`)},
	"resources/list":  {Method: mcpproxy.ListResources, Server: "up"},
	"prompts/list":    {Method: mcpproxy.ListPrompts, Server: "up"},
	"templates/list":  {Method: mcpproxy.ListTemplates, Server: "up"},
	"a reading tool":  {Method: mcpproxy.CallTool, Server: "up", Name: "read"},
	"a tool by alias": {Method: mcpproxy.CallTool, Server: "up", Name: "WRITE", Args: json.RawMessage(`[]`), Named: json.RawMessage(`{}`)},
}

// TestEveryEffectPassesEveryStep: kinds of effects, by what the policy and the user say and
// by what happens meanwhile.
func TestEveryEffectPassesEveryStep(t *testing.T) {
	const ask = "[servers.up]\nask = '*'\n"
	type state struct {
		u       *upstream
		g       *Gate
		user    *user
		granted map[string]bool
		answer  func(*state) consent.Choice // nil: no asker
		noUser  bool
		policy  string
		plan    bool
	}
	allow := func(*state) consent.Choice { return consent.ForCall }
	for name, c := range map[string]struct {
		state
		asked   int
		err     string // part of the error; empty if it is sent, or planned
		refused bool   // before the server is looked at
	}{
		"allowed":                      {state{policy: ""}, 0, "", false},
		"not granted":                  {state{policy: "", granted: map[string]bool{}}, 0, "is not granted to this run", true},
		"denied":                       {state{policy: "[servers.up]\ndeny = '*'"}, 0, `deny = "*"`, true},
		"a limit":                      {state{policy: "[servers.up]\ncallsPerRun = 0"}, 0, "callsPerRun", false},
		"the user allows it":           {state{policy: ask, answer: allow}, 1, "", false},
		"the user denies it":           {state{policy: ask, answer: func(*state) consent.Choice { return consent.Deny }}, 1, "denied by the user", false},
		"the user stops it":            {state{policy: ask, answer: func(*state) consent.Choice { return consent.Stop }}, 1, "the user stopped the run", false},
		"no user":                      {state{policy: ask, answer: allow, noUser: true}, 0, "no user can be asked", false},
		"no user, and the policy does": {state{policy: ask + "unasked = 'allow'", answer: allow, noUser: true}, 0, "", false},
		"nobody":                       {state{policy: ask}, 0, "needs the user's consent", false},
		"asking panics":                {state{policy: ask, answer: allow}, 0, "internal error", false},
		"stopped while asked":          {state{policy: ask, answer: func(s *state) consent.Choice { s.g.Stop(consent.ErrStopped); return consent.ForCall }}, 1, "the user stopped the run", false},
		"another entry while asked": {state{policy: ask, answer: func(s *state) consent.Choice {
			if len(s.user.asked) == 1 {
				s.u.changeEntry()
			}
			return consent.ForCall
		}}, 2, "", false},
		"denied after another entry": {state{policy: ask, answer: func(s *state) consent.Choice {
			if len(s.user.asked) == 1 {
				s.u.changeEntry()
				return consent.ForCall
			}
			return consent.Deny
		}}, 2, "denied by the user", false},
		"an entry that always changes": {state{policy: ask, answer: func(s *state) consent.Choice { s.u.changeEntry(); return consent.ForCall }}, 3, "has changed; try it again", false},
		"private data was read before": {state{policy: "[servers.up]\nopen = true", answer: allow}, 1, "", false},
		"a plan":                       {state{policy: ask, plan: true}, 0, "", false},
		"a plan of what is denied":     {state{policy: "[servers.up]\ndeny = '*'", plan: true}, 0, `deny = "*"`, true},
	} {
		for kind, r := range requests {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := c.state
				s.u = newUpstream(t)
				if s.granted == nil {
					s.granted = granted
				}
				o := Options{Upstreams: s.u.Proxy, Granted: s.granted, Policy: policyIn(t, s.policy), Plan: s.plan}
				if name != "private data was read before" {
					o.Taint = &consent.Taint{}
				}
				s.user = newUser(t, func(q consent.Question) consent.Answer {
					if s.u.sent.Load() > 0 {
						t.Error("it was sent before the user was asked")
					}
					if args := q.Calls[0].Arguments; strings.HasPrefix(kind, "tools/") && string(args) != `{"n":1}` {
						t.Errorf("the user is shown %s", args)
					}
					return consent.Answer{Choice: s.answer(&s)}
				})
				switch {
				case s.noUser:
					o.Asker = s.user.queue.Begin(consent.AskerOptions{NoUser: true})
				case s.answer != nil:
					o.Asker = s.user.Asker
				}
				if name == "asking panics" {
					contain.Inject(t, func(at string) bool { return at == "consent: asking" })
				}
				s.g = New(o)
				answer, err := s.g.Do(t.Context(), r)
				writes := r.Method == mcpproxy.CallTool && r.Name != "read"
				sends := c.err == "" && !(s.plan && writes)
				asked := c.asked
				if s.plan && !writes && c.err == "" { // it reads, and the user is asked as in a real run
					asked, sends = 0, false
					if !errors.As(err, new(*policy.Ask)) {
						t.Errorf("%s, %v: it is not asked about", answer, err)
					}
					err = nil
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || len(s.user.asked) != asked {
					t.Errorf("%s, %v; asked %d times, want %q and %d", answer, err, len(s.user.asked), c.err, asked)
				}
				lists := strings.HasSuffix(r.Method, "/list")
				if sent := s.u.sent.Load(); sends != (sent > 0) && !(sends && lists) || sent > 1 {
					t.Errorf("sent %d times", sent)
				}
				if (len(s.g.Plan().Calls) > 0) != (s.plan && writes && c.err == "") {
					t.Errorf("planned: %+v", s.g.Plan())
				}
				if running := s.u.Servers()[0].Status != "idle"; c.refused && running {
					t.Error("a server that may not be used was started")
				}
			})
		}
	}
}

// TestTheZeroVerdictRefuses, and so does a verdict of a gate that panics.
func TestTheZeroVerdictRefuses(t *testing.T) {
	if err := (Verdict{}).why(); err == nil || (Verdict{}).Allowed {
		t.Error("it allows")
	}
	if v := (&Gate{}).decide(t.Context(), &Effect{}, nil); v.Allowed || v.why() == nil {
		t.Errorf("without a policy: %+v", v)
	}
	if _, err := New(Options{}).Do(t.Context(), requests["tools/call"]); err == nil {
		t.Error("the zero options allow")
	}
}

// TestWhatIsAllowedOnceIsAllowedOnce, and what is allowed for the run is looked up each time.
func TestWhatIsAllowedOnceIsAllowedOnce(t *testing.T) {
	u := newUpstream(t)
	choice := consent.ForCall
	user := newUser(t, func(consent.Question) consent.Answer { return consent.Answer{Choice: choice} })
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'"), Taint: &consent.Taint{}, Asker: user.Asker})
	do := func(want int) {
		t.Helper()
		if _, err := g.Do(t.Context(), requests["tools/call"]); err != nil || len(user.asked) != want {
			t.Errorf("%v; asked %d times, want %d", err, len(user.asked), want)
		}
	}
	do(1)
	do(2)
	choice = consent.ForRun
	do(3)
	do(3)
	if err := user.queue.Revoke(user.asked[2].ID); err != nil {
		t.Fatal(err)
	}
	do(4)
}

// TestALimitCountsWhatGoesOut: two calls that may go out before one of them does.
func TestALimitCountsWhatGoesOut(t *testing.T) {
	u := newUpstream(t)
	g := New(Options{Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\ncallsPerRun = 1"), Taint: &consent.Taint{}})
	canceled, cancel := context.WithCancel(t.Context())
	if err := u.AwaitTools(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := g.Do(canceled, requests["tools/call"]); err == nil || u.sent.Load() > 0 {
		t.Fatalf("a call that was cancelled: %v", err)
	}
	if _, err := g.Do(t.Context(), requests["tools/call"]); err != nil {
		t.Errorf("what did not go out was counted: %v", err)
	}
	if _, err := g.Do(t.Context(), requests["tools/call"]); err == nil || u.sent.Load() != 1 {
		t.Errorf("the second: %v, sent %d", err, u.sent.Load())
	}
	if log := g.CallLog(); len(log.Calls) != 1 || log.Calls[0].Outcome != CallDone {
		t.Errorf("on record: %+v", log)
	}
}
