package rights

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

const giving = "[servers.github]\nsandbox = 'on'\nimage = 'node:24'\nnetwork = ['api.github.com']\nsecrets = ['TOKEN']\n"

// boxOf returns what a policy says of the server github.
func boxOf(t *testing.T, text string) *policy.Sandbox {
	t.Helper()
	box, err := policy.Parse([]byte(text), "policy.toml").NewEnforcer().Sandbox(policy.Server{Name: "github"})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func entry() config.Server {
	return config.Server{
		Name: "github", Alias: "github", Transport: config.Stdio, Command: "npx", Args: []string{"-y", "server-github@1.0.0"},
		Env: map[string]string{"TOKEN": "a-secret-token", "MODE": "fast"}, Source: "/home/me/.claude.json", Client: "claude",
	}
}

func wantChange(t *testing.T, err error, parts ...string) *ChangedError {
	t.Helper()
	changed, ok := errors.AsType[*ChangedError](err)
	if !ok {
		t.Fatalf("it is not refused: %v", err)
	}
	if !slices.Equal(changed.Parts, parts) {
		t.Errorf("it says that %q changed, not %q", changed.Parts, parts)
	}
	if !strings.Contains(err.Error(), "toolcell servers trust github") {
		t.Errorf("it has no cure: %v", err)
	}
	return changed
}

func TestFirstEntryOfTheUserIsAcceptedAndAnotherIsNot(t *testing.T) {
	dir := t.TempDir()
	s, box := Open(dir), boxOf(t, giving)
	if err := s.Allowed(entry(), box); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadDir(dir); len(kept) > 0 || err != nil {
		t.Errorf("to be asked about it has accepted it: %v, %v", kept, err)
	}
	for range 2 {
		if err := s.Check(entry(), box); err != nil {
			t.Fatal(err)
		}
	}
	for part, change := range map[string]func(*config.Server){
		"command":     func(e *config.Server) { e.Command = "bunx" },
		"argument":    func(e *config.Server) { e.Args[1] = "server-github@1.0.1" },
		"folder":      func(e *config.Server) { e.Dir = "/tmp" },
		"environment": func(e *config.Server) { e.Env["MODE"] = "slow" },
		"source file": func(e *config.Server) { e.Source = "/home/me/MCPs/github.json" },
		"address":     func(e *config.Server) { e.URL = "https://example.com" },
	} {
		other := entry()
		other.Env = maps.Clone(other.Env)
		change(&other)
		wantChange(t, s.Check(other, box), part)
		if err := s.Check(entry(), box); err != nil {
			t.Errorf("after a refusal for its %s the accepted one is refused: %v", part, err)
		}
	}
	other := entry()
	other.Env = map[string]string{"TOKEN": "a-new-token", "MODE": "fast"}
	if err := s.Check(other, box); err != nil {
		t.Errorf("with a new token: %v", err)
	}
	other.Env["NODE_OPTIONS"] = "--require /tmp/x.js"
	wantChange(t, s.Check(other, box), "environment")
	delete(other.Env, "NODE_OPTIONS")
	delete(other.Env, "MODE")
	wantChange(t, s.Check(other, box), "environment")
}

func TestChangeIsAcceptedByTheUserAlone(t *testing.T) {
	s, box := Open(t.TempDir()), boxOf(t, giving)
	if err := s.Check(entry(), box); err != nil {
		t.Fatal(err)
	}
	other := entry()
	other.Args = []string{"-y", "evil\x1b[2J", "a-secret-token"}
	changed := wantChange(t, s.Check(other, box), "argument")
	for _, want := range []string{"-argument: server-github@1.0.0\n", "+argument: evil\\u001b[2J\n"} {
		if !strings.Contains(changed.Diff, want) {
			t.Errorf("the difference has no %q:\n%s", want, changed.Diff)
		}
	}
	diff, known, err := s.Diff(other, box)
	if err != nil || !known || !strings.Contains(diff, "+argument: evil") {
		t.Errorf("%s, %v, %v", diff, known, err)
	}
	if err := s.Accept(other, box); err != nil {
		t.Fatal(err)
	}
	if diff, known, err := s.Diff(other, box); diff != "" || !known || err != nil {
		t.Errorf("an accepted one differs: %s, %v, %v", diff, known, err)
	}
	if err := s.Check(other, box); err != nil {
		t.Errorf("it was accepted: %v", err)
	}
	wantChange(t, s.Check(entry(), box), "argument")
	kept, err := os.ReadFile(s.file("github").Path)
	if err != nil || strings.Contains(string(kept), "a-secret-token") || strings.Contains(string(kept), "\x1b") {
		t.Errorf("a secret is kept: %s, %v", kept, err)
	}
}

// TestProjectCannotTakeTheNameOfAServer of the user's, and with it what the policy gives.
func TestProjectCannotTakeTheNameOfAServer(t *testing.T) {
	s, box := Open(t.TempDir()), boxOf(t, giving)
	evil := entry()
	evil.Source, evil.Project, evil.Command = "/work/project/.mcp.json", true, "./evil"
	first := wantChange(t, s.Check(evil, box), "source file", "command", "argument", "environment", "image")
	if !first.New || !strings.Contains(first.Error(), `server "github" is of a project's file, /work/project/.mcp.json, and [servers.github] of the policy gives it something, which you have not accepted; `) {
		t.Errorf("before any other: %v", first)
	}
	if err := s.Check(entry(), box); err != nil {
		t.Fatal(err)
	}
	if wantChange(t, s.Check(evil, box), "source file", "command").New {
		t.Error("nothing was accepted for the name")
	}
	same := entry()
	same.Source, same.Project = evil.Source, true
	wantChange(t, s.Check(same, box), "source file")
	disguised := entry() // a file of the project's in the place of the user's
	disguised.Project = true
	wantChange(t, s.Check(disguised, box), "source file")
	if err := s.Accept(evil, box); err != nil {
		t.Fatal(err)
	}
	for _, e := range []config.Server{evil, entry()} {
		if err := s.Check(e, box); err != nil {
			t.Errorf("both were accepted: %v", err)
		}
	}
	if was, err := s.Forget("github"); !was || err != nil {
		t.Error(was, err)
	}
	if was, err := s.Forget("github"); was || err != nil {
		t.Error(was, err)
	}
	wantChange(t, s.Check(evil, box), "source file", "command", "argument", "environment", "image")
}

// TestProjectWithoutASandboxHasToBeAccepted: the policy may mean a server of the user's by that name.
func TestProjectWithoutASandboxHasToBeAccepted(t *testing.T) {
	s := Open(t.TempDir())
	mine, theirs := entry(), entry()
	theirs.Source, theirs.Project = "/work/project/.mcp.json", true
	for text, want := range map[string]bool{
		"": false, "[servers.github]\nsandbox = 'off'": true, "[default]\nsandbox = 'off'": true, "[servers.github]\nsandbox = 'on'": false,
		"[servers.github]\nmemory = '1GiB'\npids = 256": false, "[servers.github]\npids = 257": true, "[servers.github]\nmemory = '2g'": true,
		"[servers.github]\nmounts = [{ source = '/a' }]": true, "[servers.github]\ninstall = 'a.com'": true,
	} {
		box := boxOf(t, text)
		err := s.Check(theirs, box)
		if (err != nil) != want || strings.Contains(text, "'off'") && !strings.Contains(err.Error(), "and it would run without a sandbox by policy policy.toml, ") {
			t.Errorf("%s: of a project: %v", text, err)
		}
		if err := s.Check(mine, box); err != nil {
			t.Errorf("%s: of the user: %v", text, err)
		}
	}
	if rights := Of(theirs, boxOf(t, "[default]\nsandbox = 'off'")); len(rights) != 1 || rights[0] != `no sandbox: policy policy.toml, [default] sandbox = "off"` {
		t.Errorf("%q", rights)
	}
	if left, err := os.ReadDir(s.dir); err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("what gets nothing is kept: %v, %v", left, err)
	}
}

// TestPolicyIsTheUsersOwnHand, so that other rights for the same entry are not asked about, but for
// another image.
func TestPolicyIsTheUsersOwnHand(t *testing.T) {
	s := Open(t.TempDir())
	if err := s.Check(entry(), boxOf(t, giving)); err != nil {
		t.Fatal(err)
	}
	more := boxOf(t, giving+"pids = 1000\n")
	if err := s.Check(entry(), more); err != nil {
		t.Errorf("with more processes: %v", err)
	}
	all, err := s.file("github").Read()
	if err != nil || !slices.Equal(all[entry().Source].Rights, Of(entry(), more)) {
		t.Errorf("the rights are not noted: %+v, %v", all, err)
	}
	wantChange(t, s.Check(entry(), boxOf(t, strings.Replace(giving, "node:24", "node:26", 1))), "image")
	if err := s.Check(entry(), boxOf(t, strings.Replace(giving, "'TOKEN'", "'TOKEN', 'MODE'", 1))); err != nil {
		t.Errorf("with one more secret: %v", err)
	}
	if err := s.Check(entry(), boxOf(t, "[servers.github]\nsandbox = 'off'\nimage = 'x'")); err != nil {
		t.Errorf("without a sandbox it gets nothing, so nothing is asked: %v", err)
	}
}

func TestWhatCannotBeReadOrKeptRefuses(t *testing.T) {
	s, box := Open(t.TempDir()), boxOf(t, giving)
	if err := os.WriteFile(s.file("github").Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(entry(), box); err == nil || !strings.Contains(err.Error(), "correct or remove it") {
		t.Errorf("with a broken file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Open(filepath.Join(file, "rights")).Check(entry(), box); err == nil {
		t.Error("what cannot be kept is given")
	}
	full := t.TempDir()
	for i := range 2*maxServers + 1 {
		if err := os.WriteFile(filepath.Join(full, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Open(full).Check(entry(), box); err == nil || !strings.Contains(err.Error(), "more than 1000 servers") {
		t.Errorf("in a full folder: %v", err)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s, box := Open(t.TempDir()), boxOf(t, giving)
	e := entry()
	e.Args = append([]string{strings.Repeat("x", 2*maxLine)}, slices.Repeat([]string{"x"}, maxLines+10)...)
	for i := range 2 * maxSources {
		e.Source = fmt.Sprintf("/home/me/%d.json", i)
		if err := s.Accept(e, box); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.file("github").Read()
	if err != nil || len(all) != maxSources {
		t.Fatalf("%d are kept, %v", len(all), err)
	}
	if err := s.Check(e, box); err != nil {
		t.Errorf("the last one is not among them: %v", err)
	}
	e.Args = slices.Clone(e.Args)
	e.Args[maxLines+10] = "y" // beyond the lines that are kept
	wantChange(t, s.Check(e, box), "its order, or a part that is not shown,")
	if diff, _, err := s.Diff(e, box); err != nil || diff == "" {
		t.Errorf("a change that is not kept is not told: %v", err)
	}
}

// TestOneOfManyIsAccepted if entries of a name start at the same time.
func TestOneOfManyIsAccepted(t *testing.T) {
	s, box := Open(t.TempDir()), boxOf(t, giving)
	var accepted sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			e := entry()
			e.Args = []string{fmt.Sprint(i)}
			if s.Check(e, box) == nil {
				accepted.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	accepted.Range(func(_, _ any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d entries were accepted", n)
	}
}
