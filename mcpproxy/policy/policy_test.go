package policy

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// parsePolicy reads a policy from text, and fails the test if it cannot.
func parsePolicy(t *testing.T, text string) *Policy {
	t.Helper()
	p := Load(writePolicy(t, text), true, nil)
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

func writePolicy(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// toolOf is a tool that only reads if its name begins with get or list.
func toolOf(name string) Tool {
	t := Tool{Name: name, Alias: strings.ReplaceAll(name, "-", "_")}
	if strings.HasPrefix(name, "get") || strings.HasPrefix(name, "list") {
		t.ReadOnly = true
	}
	return t
}

func TestPolicyAllowsAndRefuses(t *testing.T) {
	const text = `
[default]
deny = "drop_*"

[servers.github]
allow = ["get_*", "list_*", "create_issue", "drop_*"]
deny = ["get_secret*"]

[servers.memory]
readOnly = true

[servers."prod-*"]
readOnly = true
deny = "*restart*"

[servers.prod-eu]
readOnly = false

[servers.closed]
deny = "*"

[servers.empty]
allow = []

[servers."*"]
allow = ["*_*", "get*", "set*"]

[servers."x-*"]
readOnly = true

[servers."*-y"]
readOnly = false

[servers."Google Drive"]
allow = "?et_file"
`
	p := parsePolicy(t, text)
	for _, tt := range []struct{ server, tool, want string }{
		{"github", "get_issue", ""},
		{"github", "create_issue", ""},
		{"github", "create-issue", ""}, // by its alias
		{"github", "delete_repo", `policy.toml, [servers.github] allow: calling "delete_repo" of server "github" is not allowed: it is none of "get_*", "list_*", "create_issue", "drop_*"`},
		{"github", "get_secrets", `policy.toml, [servers.github] deny = "get_secret*": calling "get_secrets" of server "github" is not allowed`},
		{"github", "GET_SECRETS", `deny = "get_secret*"`},
		{"github", "drop_table", `policy.toml, [default] deny = "drop_*": calling "drop_table"`}, // deny wins wherever it stands
		{"memory", "get_graph", ""},
		{"memory", "create_entities", `policy.toml, [servers.memory] readOnly = true: calling "create_entities" of server "memory" is not allowed: the server does not say that it only reads`},
		{"prod-us", "set_size", `[servers."prod-*"] readOnly = true`},
		{"prod-eu", "set_size", ""}, // the section that says more about it
		{"prod-eu", "restart_all", `[servers."prod-*"] deny = "*restart*"`},
		{"x-y", "set_size", ""}, // two globs that say as much: the later
		{"x-z", "set_size", `[servers."x-*"] readOnly = true`},
		{"closed", "get_x", `policy.toml, [servers.closed] deny = "*": using server "closed" is not allowed`},
		{"empty", "get_x", `[servers.empty] allow = []`},
		{"other", "find", `[servers."*"] allow: calling "find"`},
		{"other", "find_it", ""},
		{"Google Drive", "get_file", ""},
		{"Google Drive", "et_file", `[servers."Google Drive"] allow`},
		{"google-drive", "get_anything", ""}, // another name, another alias
	} {
		err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: tt.server, Alias: strings.ReplaceAll(strings.ToLower(tt.server), "-", "_")}, Tool: toolOf(tt.tool)})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s.%s: %v", tt.server, tt.tool, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "policy ")):
			t.Errorf("%s.%s: error %v, want %s", tt.server, tt.tool, err, tt.want)
		}
	}
	if err := p.NewEnforcer().AuthorizeServer(Server{Name: "closed"}); err == nil || !strings.Contains(err.Error(), `[servers.closed] deny = "*"`) {
		t.Errorf("a server that is closed as a whole: %v", err)
	}
	if err := p.NewEnforcer().AuthorizeServer(Server{Name: "github"}); err != nil {
		t.Errorf("a server with some allowed tools: %v", err)
	}
}

func TestPolicySectionMatchesAnAlias(t *testing.T) {
	p := parsePolicy(t, "[servers.google_drive]\ndeny = 'trash'")
	if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "google-drive", Alias: "google_drive"}, Tool: Tool{Name: "trash"}}); err == nil {
		t.Error("a section that names the server by its alias does not count")
	}
}

func TestPolicySectionsAboutNoServerAreFound(t *testing.T) {
	p := parsePolicy(t, "[default]\nreadOnly = true\n[servers.gihub]\n[servers.google_drive]\n[servers.'git*']\n[servers.'*']\n[servers.'x*']\n"+
		"[[servers.gihub.tools.a.when]]\npath = 'a'\nop = '=='\nvalue = 1\n[servers.y.tools.b]\ncallsPerRun = 1\n[[servers.z.tools.'c*'.when]]\npath = 'a'\nop = '=='\nvalue = 1\n[[servers.github.tools.d.when]]\npath = 'a'\nop = '=='\nvalue = 1\n"+
		"[servers.w]\ndeny = 'e'\n[servers.w.tools.e]\ncallsPerRun = 1")
	got := p.UnmatchedSections([]Server{{Name: "github", Alias: "github"}, {Name: "google-drive", Alias: "google_drive"}})
	if want := `[{[[servers.gihub.tools.a.when]] github} {[servers.w] } {[servers.w.tools.e] } {[[servers.z.tools."c*".when]] } {[servers.y.tools.b] } {[servers."x*"] }]`; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for name, p := range map[string]*Policy{"no file": None(), "broken": Load(writePolicy(t, "[servers.x]\nx"), true, nil)} {
		if got := p.UnmatchedSections(nil); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNoPolicyAllowsEverything(t *testing.T) {
	none := None()
	for name, p := range map[string]*Policy{"nil": none, "no file": Load(filepath.Join(t.TempDir(), "policy.toml"), false, nil), "empty file": parsePolicy(t, "")} {
		r := p.NewEnforcer()
		if err := r.Authorize(t.Context(), Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.AuthorizeServer(Server{Name: "s"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPolicyLimitsARun(t *testing.T) {
	p := parsePolicy(t, `
[default]
callsPerRun = 2
[servers.busy]
callsPerRun = 100
[servers.busy.tools."set_*"]
callsPerRun = 1
`)
	run := p.NewEnforcer()
	a, b := Server{Name: "a"}, Server{Name: "b"}
	call := func(r *Enforcer, s Server, tool string) error {
		return r.Authorize(t.Context(), Call{Server: s, Tool: toolOf(tool)})
	}
	for range 2 {
		if err := call(run, a, "x"); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, call(run, a, "y"), `policy.toml, [default] callsPerRun = 2: this run has called server "a" 2 times already`)
	if err := call(run, b, "x"); err != nil {
		t.Errorf("another server has a count of its own: %v", err)
	}
	if err := run.AuthorizeServer(b); err != nil {
		t.Errorf("reading a resource: %v", err)
	}
	wantErr(t, run.AuthorizeServer(b), "callsPerRun = 2")
	if err := call(p.NewEnforcer(), a, "x"); err != nil {
		t.Errorf("another run has counts of its own: %v", err)
	}
	busy := Server{Name: "busy"}
	for _, tool := range []string{"set_a", "set_b", "get", "get", "get"} {
		if err := call(run, busy, tool); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, call(run, busy, "set_a"), `[servers.busy.tools."set_*"] callsPerRun = 1: this run has called "set_a" of server "busy" once already`)
}

func TestPolicyLimitsAMinuteOverAllRuns(t *testing.T) {
	p := parsePolicy(t, "[servers.s]\ncallsPerMinute = 3\n[servers.s.tools.write]\ncallsPerMinute = 1")
	now := time.Now()
	p.now = func() time.Time { return now }
	s, read, write := Server{Name: "s"}, Tool{Name: "read"}, Tool{Name: "write"}
	if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: write}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(20 * time.Second)
	wantErr(t, p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: write}), `[servers.s.tools.write] callsPerMinute = 1: "write" of server "s" was called once within the last minute; call it again in 40 s`)
	// A refused call takes nothing of the server's own limit.
	for range 2 {
		if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: read}); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(500 * time.Millisecond)
	wantErr(t, p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: read}), `[servers.s] callsPerMinute = 3: server "s" was called 3 times within the last minute; call it again in 40 s`)
	now = now.Add(39500 * time.Millisecond)
	if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: write}); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	wantErr(t, p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: read}), "call it again in 20 s")
	// A change of the file does not restart the minute.
	if err := os.WriteFile(p.file, []byte("[servers.s]\ncallsPerMinute = 3 # changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantErr(t, p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: read}), "call it again in 20 s")
	// Calls of minutes that are over take no memory.
	for range 5 {
		now = now.Add(time.Minute)
		if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: s, Tool: read}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := p.minutes[limitKey{section: "[servers.s]", server: "s", perMinute: true}]; len(kept) != 1 {
		t.Errorf("%d calls are kept", len(kept))
	}
}

func TestPolicyLimitHoldsForConcurrentCalls(t *testing.T) {
	p := parsePolicy(t, "[default]\ncallsPerRun = 50\ncallsPerMinute = 70")
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		run := p.NewEnforcer()
		for range 100 {
			all.Go(func() {
				if run.Authorize(t.Context(), Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}}) == nil {
					admitted.Add(1)
				}
			})
		}
	}
	all.Wait()
	if n := admitted.Load(); n != 70 {
		t.Errorf("%d calls were admitted, want 70", n)
	}
}

func TestPolicyIsReadAgainForTheNextRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	p := Load(file, false, nil)
	ask := func() error {
		return p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	before := p.NewEnforcer()
	write("[servers.s]\ndeny = 't'")
	wantErr(t, ask(), "deny")
	if err := before.Authorize(t.Context(), Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}}); err != nil {
		t.Errorf("an active run keeps the rules that it began with: %v", err)
	}
	write("[servers.s]\ndeny = 'u'")
	if err := ask(); err != nil {
		t.Error(err)
	}
	write("[servers.s]\ndeny = ")
	wantErr(t, p.Err(), "policy.toml:2:") // of the file as it is now, also before the next run
	wantErr(t, ask(), "policy.toml:2:", "nothing may be called until this is fixed")
	write("[servers.s]\ndeny = []")
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantErr(t, ask(), "policy.toml: the file was there and is gone; put it back, or start toolcell again")
	wantErr(t, p.Err(), "is gone")
}

func TestContentsSumUpAFile(t *testing.T) {
	const when = ".when]]\npath = 'a'\nop = '=='\nvalue = 1\n"
	p := parsePolicy(t, "[default]\n[servers.a]\n[servers.a.tools.x]\ncallsPerRun = 1\n[[servers.a.tools.y"+when+"[[servers.'b*'.tools.z"+when+
		"[network]\nallow = ['x.org', 'y.org']\ndeny = 'z.org'")
	want := Contents{Sections: 3, When: []string{"[[servers.a.tools.y.when]]", `[[servers."b*".tools.z.when]]`}, NetworkRules: 3}
	if got := p.Contents(); got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for name, p := range map[string]*Policy{"nil": nil, "no file": None(), "broken": Load(writePolicy(t, "x"), true, nil)} {
		if got := p.Contents(); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPolicyThatAllowsNothingIsToldOf(t *testing.T) {
	var out strings.Builder
	Load(writePolicy(t, "x"), true, slog.New(slog.NewTextHandler(&out, nil)))
	if got := out.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "policy.toml:1:") {
		t.Errorf("got %q", got)
	}
}

func TestPolicyThatWasNamedMustBeThere(t *testing.T) {
	p := Load(filepath.Join(t.TempDir(), "mine.toml"), true, nil)
	wantErr(t, p.Err(), "mine.toml: there is no such file")
	wantErr(t, p.NewEnforcer().AuthorizeServer(Server{Name: "s"}), "there is no such file", "nothing may be called")
}

func TestPolicyThatOthersMayWriteIsToldOf(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"others may write to the policy: chmod go-w": func(file string) error { return os.Chmod(file, 0o622) },
		"others may replace the policy: chmod go-w":  func(file string) error { return os.Chmod(filepath.Dir(file), 0o777) },
	} {
		file := writePolicy(t, "")
		if err := change(file); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		Load(file, true, slog.New(slog.NewTextHandler(&out, nil)))
		if !strings.Contains(out.String(), name) {
			t.Errorf("got %q, want %q", out.String(), name)
		}
	}
}

func wantErr(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not contain %q", err, part)
		}
	}
}
