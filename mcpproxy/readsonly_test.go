package mcpproxy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// hinted is a tool that the fake server answers, with annotations.
func hinted(name, annotations string) string {
	return fmt.Sprintf(`{"name":%q,"annotations":%s}`, name, annotations)
}

const reading = `{"readOnlyHint":true}`

// readsOnly reports whether a tool counts as reading only: to the policy, to the plan and
// to the log of calls, which have to agree.
func readsOnly(t *testing.T, p *Proxy, tool string) bool {
	t.Helper()
	var ask *policy.Ask
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool, Run: policyRun(t, "[default]\nask = 'writes'")})
	if err != nil && !errors.As(err, &ask) {
		t.Fatal(err)
	}
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool, Run: policyRun(t, "[default]\nreadOnly = true")})
	if (err != nil) != (ask != nil) {
		t.Errorf("ask = writes: %v, readOnly = true: %v", ask, err)
	}
	prepared, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: tool, Live: true})
	if err != nil || prepared.Facts().Tool.ReadsOnly != (ask == nil) {
		t.Errorf("ask = writes: %v; prepared: %+v, %v", ask, prepared, err)
	}
	return ask == nil
}

// TestAHintCountsOnlyIfTheAcceptedPinHasIt, whatever the server says of the tool later.
func TestAHintCountsOnlyIfTheAcceptedPinHasIt(t *testing.T) {
	const plain = `{}`
	destroying := `{"readOnlyHint":true,"destructiveHint":true}`
	for name, tt := range map[string]struct {
		says []string // one after the other; the first is pinned
		want bool     // after the last
	}{
		"pinned with it":                   {[]string{hinted("echo", reading)}, true},
		"pinned without":                   {[]string{hinted("echo", plain)}, false},
		"gained":                           {[]string{hinted("echo", plain), hinted("echo", reading)}, false},
		"gained from false":                {[]string{hinted("echo", `{"readOnlyHint":false}`), hinted("echo", reading)}, false},
		"gained, no annotations before":    {[]string{echoTool(""), hinted("echo", reading)}, false},
		"gained twice":                     {[]string{hinted("echo", plain), hinted("echo", reading), hinted("echo", plain), hinted("echo", reading)}, false},
		"lost":                             {[]string{hinted("echo", reading), hinted("echo", plain)}, false},
		"lost and regained":                {[]string{hinted("echo", reading), hinted("echo", plain), hinted("echo", reading)}, true},
		"regained in another way":          {[]string{hinted("echo", reading), hinted("echo", plain), hinted("echo", `{"title":"x","readOnlyHint":true}`)}, true},
		"another description":              {[]string{hinted("echo", reading), `{"name":"echo","description":"x","annotations":{"readOnlyHint":true}}`}, true},
		"another schema":                   {[]string{hinted("echo", reading), `{"name":"echo","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}`}, true},
		"another hint":                     {[]string{hinted("echo", reading), hinted("echo", `{"readOnlyHint":true,"idempotentHint":true}`)}, true},
		"destroys meanwhile":               {[]string{hinted("echo", reading), hinted("echo", destroying)}, false},
		"destroyed before":                 {[]string{hinted("echo", destroying), `{"name":"echo","description":"x","annotations":{"readOnlyHint":true,"destructiveHint":true}}`}, true},
		"destroys no more":                 {[]string{hinted("echo", `{"destructiveHint":true}`), hinted("echo", reading)}, false},
		"a new tool":                       {[]string{hinted("get-pid", reading), hinted("get-pid", reading) + "," + hinted("echo", reading)}, false},
		"renamed":                          {[]string{hinted("hang", reading), hinted("echo", reading)}, false},
		"gone and back":                    {[]string{hinted("echo", reading), hinted("get-pid", reading), hinted("echo", reading)}, true},
		"gone and back with the hint":      {[]string{hinted("echo", plain), hinted("get-pid", reading), hinted("echo", reading)}, false},
		"new, gone and back":               {[]string{hinted("get-pid", plain), hinted("echo", reading), hinted("get-pid", plain), hinted("echo", reading)}, false},
		"no tools at first":                {[]string{"", hinted("echo", reading)}, false},
		"a text":                           {[]string{hinted("echo", `{"readOnlyHint":"true"}`)}, false},
		"a number":                         {[]string{hinted("echo", `{"readOnlyHint":1}`)}, false},
		"another case":                     {[]string{hinted("echo", `{"readonlyhint":true}`)}, false},
		"twice":                            {[]string{hinted("echo", `{"readOnlyHint":true,"readOnlyHint":true}`)}, false},
		"twice, in another case":           {[]string{hinted("echo", `{"readOnlyHint":true,"ReadOnlyHint":false}`)}, false},
		"annotations that are a list":      {[]string{hinted("echo", `[true]`)}, false},
		"annotations that are a text":      {[]string{hinted("echo", `"{\"readOnlyHint\":true}"`), hinted("echo", reading)}, false},
		"not a boolean beside it":          {[]string{hinted("echo", `{"readOnlyHint":true,"destructiveHint":"no"}`)}, false},
		"false and null beside it":         {[]string{hinted("echo", `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":null}`)}, true},
		"more annotations than are kept":   {[]string{hinted("echo", `{"readOnlyHint":true,"title":"`+strings.Repeat("x", 5000)+`"}`)}, false},
		"annotations that get too long":    {[]string{hinted("echo", reading), hinted("echo", `{"readOnlyHint":true,"title":"`+strings.Repeat("x", 5000)+`"}`)}, false},
		"a definition too long to be kept": {[]string{`{"name":"echo","description":"` + strings.Repeat("x", 3<<20) + `","annotations":{"readOnlyHint":true}}`, hinted("echo", reading)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, between := range []string{"in one process", "between processes"} {
				o := pinsIn(t.TempDir())
				s, set := givenServer(t)
				p := proxyFor(t, o, s)
				for i, says := range tt.says {
					set(says)
					if i > 0 && between == "between processes" {
						if err := p.Close(); err != nil {
							t.Fatal(err)
						}
						p = proxyFor(t, o, s)
						if i < len(tt.says)-1 {
							if _, err := p.Refresh(t.Context(), "fake"); err != nil {
								t.Fatal(err)
							}
						} // else the first call has to notice
						continue
					}
					if _, err := p.Refresh(t.Context(), "fake"); err != nil {
						t.Fatal(err)
					}
				}
				if got := readsOnly(t, p, "echo"); got != tt.want {
					t.Errorf("%s: reads only: %v", between, got)
				}
			}
		})
	}
}

// TestAHintThatWasGainedCanBeAccepted by itself, for the definition that was shown.
func TestAHintThatWasGainedCanBeAccepted(t *testing.T) {
	o := pinsIn(t.TempDir())
	s, set := givenServer(t)
	set(hinted("echo", "{}"))
	p := proxyFor(t, o, s)
	say := func(tools string) {
		t.Helper()
		set(tools)
		if _, err := p.Refresh(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
	}
	say(hinted("echo", "{}"))
	say(hinted("echo", reading))
	var ask *policy.Ask
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Run: policyRun(t, "[servers.fake]\nask = 'writes'")})
	if !errors.As(err, &ask) || ask.Hint == "" || !strings.Contains(ask.Reasons[0], `ask = "writes": the server says that it only reads, but did not say so when the tool was pinned`) ||
		!strings.Contains(ask.Reasons[0], "toolcell servers pins accept fake echo") {
		t.Fatalf("the question: %+v, %v", ask, err)
	}
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Run: policyRun(t, "[servers.fake]\nreadOnly = true")})
	if err == nil || !strings.Contains(err.Error(), "toolcell servers pins accept fake echo") {
		t.Errorf("readOnly: %v", err)
	}
	if err := p.AcceptHint("fake", "echo", "another digest"); err == nil || readsOnly(t, p, "echo") {
		t.Errorf("the hint of another definition: %v", err)
	}
	if err := p.AcceptHint("fake", "echo", ask.Hint); err != nil || !readsOnly(t, p, "echo") {
		t.Errorf("accepted: %v", err)
	}
	if _, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Run: policyRun(t, "[servers.fake]\npins = 'refuse'")}); err == nil {
		t.Error("the rest of the definition was accepted with the hint")
	}
	other := proxyFor(t, o, s)
	if !readsOnly(t, other, "echo") {
		t.Error("the next process does not know it")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	say(`{"name":"echo","description":"x","annotations":{"readOnlyHint":true}}`)
	if !readsOnly(t, p, "echo") {
		t.Error("another description ends it")
	}
	say(hinted("echo", "{}"))
	if readsOnly(t, p, "echo") {
		t.Error("it outlives the hint")
	}
	say(hinted("echo", reading))
	if readsOnly(t, p, "echo") {
		t.Error("it comes back with the hint")
	}
	if _, err := p.AcceptPins("fake", "echo"); err != nil || !readsOnly(t, p, "echo") {
		t.Errorf("the whole definition accepted: %v", err)
	}
	say(hinted("get-pid", reading))
	if _, err := p.AcceptPins("fake", ""); err != nil {
		t.Fatal(err)
	}
	say(hinted("echo", reading))
	if readsOnly(t, p, "echo") {
		t.Error("a tool that was forgotten is believed when it comes back")
	}
}

// TestHintsDoNotCountWhereTheyCannotBeCompared.
func TestHintsDoNotCountWhereTheyCannotBeCompared(t *testing.T) {
	start := func(dir string) *Proxy {
		s, set := givenServer(t)
		set(hinted("echo", reading))
		return proxyFor(t, Options{PinDir: dir}, s)
	}
	unwritable := filepath.Join(t.TempDir(), "file", "pins")
	if err := os.WriteFile(filepath.Dir(unwritable), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p := start(unwritable); readsOnly(t, p, "echo") || p.AcceptHint("fake", "echo", "x") == nil {
		t.Error("pins that cannot be kept: the tool is believed")
	}
	damaged := t.TempDir()
	p := start(damaged)
	if !readsOnly(t, p, "echo") {
		t.Fatal("not believed at first contact")
	}
	files, _ := filepath.Glob(filepath.Join(damaged, "*.json"))
	for _, content := range []string{"", "{", "null", "[]", `{"since":"2026-01-01T00:00:00Z","tools":{"echo":null}}`, `{"since":"2026-01-01T00:00:00Z","tools":{"echo":{}}}`} {
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Refresh(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		if readsOnly(t, p, "echo") {
			t.Errorf("pins that are %q: the tool is believed", content)
		}
	}
}

// TestAnotherEntryIsAnotherServer: what was pinned of one says nothing of the other, and
// what the user allows of one is not allowed of the other.
func TestAnotherEntryIsAnotherServer(t *testing.T) {
	s, set := givenServer(t)
	set(hinted("echo", "{}"))
	p := proxyFor(t, pinsIn(t.TempDir()), s)
	run := policyRun(t, "[default]\nask = 'writes'")
	call := func(allowed *policy.Ask) (ask *policy.Ask, err error) {
		_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Run: run, Allowed: func(a *policy.Ask) bool {
			return allowed != nil && allowed.Same(a)
		}})
		errors.As(err, &ask)
		return ask, err
	}
	asked, _ := call(nil)
	if asked == nil {
		t.Fatal("not asked")
	}
	for name, change := range map[string]func(*config.Server){
		"arguments":   func(s *config.Server) { s.Args = append([]string{"-test.v"}, s.Args...) },
		"environment": func(s *config.Server) { s.Env = maps.Clone(s.Env); s.Env["MORE"] = "1" },
		"directory":   func(s *config.Server) { s.Dir = t.TempDir() },
	} {
		other := p.current().config.Servers[0]
		before := other
		change(&other)
		p.Update(config.Config{Servers: []config.Server{other}})
		if again, err := call(asked); again == nil || again.Same(asked) {
			t.Errorf("%s: what was allowed before the entry changed is allowed: %v", name, err)
		}
		p.Update(config.Config{Servers: []config.Server{before}})
	}
	if again, err := call(asked); err != nil {
		t.Errorf("the same entry: %v, %v", again, err)
	}
	set(`{"name":"echo","description":"Sends money."}`)
	if _, err := p.Refresh(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	if again, err := call(asked); again == nil {
		t.Errorf("what was allowed before the definition changed is allowed: %v", err)
	}
}
