package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// An agent is a product that has a model call tools. It is started as its user would, with
// settings of its own, and talks with a fakeModel.
type agent struct {
	program string // in the folder of npm's programs
	shell   string // the end of the name of its tool that runs commands, and the argument's name
	command string
	setUp   func(t *testing.T, home string, entry object, model string) // writes its settings
	args    []string                                                    // to run without a user
	env     env                                                         // MODEL is where the model is

	revision, elicitation string // of the protocol that it speaks, and what it declares in it
}

// started is an agent's process, and what belongs to it.
type started struct {
	h     *host
	e     env
	model *fakeModel
	cmd   *exec.Cmd
	wire  string // the file with what the agent sends to toolcell
}

// prepare writes the settings of an agent and returns its command, which is not started.
func (a *agent) prepare(t *testing.T, program, policy string, more env, play func(results []string) move) *started {
	t.Helper()
	h, e := firstHost(t), asks(t, policy, more)
	home := t.TempDir()
	s := &started{h: h, e: e, model: startModel(t, play), wire: filepath.Join(home, "wire")}
	serve := h.command(t, e, "serve")
	vars := object{"TOOLCELL_STATE_DIR": filepath.Join(h.home, "state")}
	for k, v := range e {
		vars[k] = v
	}
	a.setUp(t, home, object{
		"command": "/bin/sh", "args": append([]string{"-c", `tee "$0" | "$@"`, s.wire}, serve.Args...), "env": vars,
	}, s.model.url)
	s.cmd = exec.Command(program, a.args...)
	s.cmd.Dir = home
	vals := env{"HOME": home, "PATH": os.Getenv("PATH"), "LANG": "C.UTF-8", "TERM": "xterm-256color", "MODEL": s.model.url}
	maps.Copy(vals, a.env)
	for k, v := range vals {
		s.cmd.Env = append(s.cmd.Env, k+"="+strings.ReplaceAll(v, "MODEL", s.model.url))
	}
	return s
}

// withoutUser runs an agent to its end.
func (s *started) withoutUser(t *testing.T) (ended chan string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow(3*time.Minute))
	ended = make(chan string, 1)
	var out syncBuffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() })
	done := make(chan struct{})
	go func() {
		err := s.cmd.Wait()
		stop()
		ended <- fmt.Sprintf("%v\n%s", err, &out)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Logf("the agent wrote:\n%s\nthe model saw:\n%q", &out, s.model.seen())
		}
	})
	return ended
}

// sawResults waits until the model has seen so many results, and returns them.
func (s *started) sawResults(t *testing.T, n int) []string {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d results at the model", n), func() bool { return len(s.model.seen()) >= n })
	return s.model.seen()
}

// sent returns what the agent has sent to toolcell.
func (s *started) sent() string {
	wire, _ := os.ReadFile(s.wire) // there is none before it has started toolcell
	return string(wire)
}

// declared returns the version of the protocol that the agent speaks, and what it can show
// of elicitations, as JSON.
func (s *started) declared(t *testing.T) (revision, elicitation string) {
	t.Helper()
	type capabilities struct{ Elicitation json.RawMessage }
	var first struct {
		Params struct {
			ProtocolVersion string
			Capabilities    capabilities
			Meta            struct {
				Revision     string       `json:"io.modelcontextprotocol/protocolVersion"`
				Capabilities capabilities `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(s.sent())).Decode(&first); err != nil {
		t.Fatal(err)
	}
	p := first.Params
	return p.ProtocolVersion + p.Meta.Revision, string(p.Capabilities.Elicitation) + string(p.Meta.Capabilities.Elicitation)
}

// putJSON writes a file of an agent's settings.
func putJSON(t *testing.T, path string, v any) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, path, string(body))
}

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// with returns a copy of an object with more members.
func with(o, more object) object {
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}

var sessionID = regexp.MustCompile(`ask-[A-Z2-7]{26}`)

const createOne = "print((await mcp_github.create_issue(title='by-an-agent')).title)"

// comesBack plays a model that makes a call which is asked, tries to approve it itself if
// the agent has a shell, and comes back when it may.
func (a *agent) comesBack(h *host, approved <-chan struct{}) func(results []string) move {
	approve := fmt.Sprintf("script -qec '%s approvals approve --state-dir %s ID' /dev/null", bin, filepath.Join(h.home, "state"))
	return func(results []string) move {
		id := sessionID.FindString(strings.Join(results, " "))
		switch {
		case len(results) == 0:
			return move{tool: "run_python", args: object{"code": createOne, "servers": []string{"github"}}}
		case len(results) == 1:
			return move{tool: a.shell, args: object{a.command: strings.ReplaceAll(approve, "ID", id), "description": "approves"}}
		case len(results) == 2:
			<-approved
			return move{tool: "run_python", args: object{"code": "", "session": id}}
		}
		return move{text: "the end"}
	}
}

// testComesBack has an agent without a user meet a call that is asked: its model is told,
// cannot approve it, and goes on once the user has, in a terminal of his own.
func (a *agent) testComesBack(t *testing.T, program string) {
	approved := make(chan struct{})
	s := a.prepare(t, program, "[servers.github]\nask = 'create_*'", nil, a.comesBack(firstHost(t), approved))
	ended := s.withoutUser(t)
	results := s.sawResults(t, 2)
	id := sessionID.FindString(results[0])
	if !strings.Contains(results[0], "approval_needed") || id == "" {
		close(approved)
		t.Fatalf("the model saw %q", results)
	}
	if !strings.Contains(strings.Join(strings.Fields(results[1]), " "), "was started by the MCP client") { // its terminal breaks lines
		t.Errorf("the model's own approval: %s", results[1])
	}
	p := inOtherTerminal(t, s.h.command(t, s.e, "approvals", "approve", id))
	p.sees("To allow this call, type ")
	p.enters(p.sees(":")+"\r", "approved: "+id)
	close(approved)
	if revision, elicitation := s.declared(t); revision != a.revision || elicitation != a.elicitation {
		t.Errorf("it speaks %q and declares %q, not %q and %q: tell docs/approvals.md", revision, elicitation, a.revision, a.elicitation)
	}
	if out := <-ended; !strings.Contains(out, "the end") {
		t.Errorf("the agent ended with %s", out)
	}
	if results := s.model.seen(); len(results) != 3 || !strings.Contains(results[2], "by-an-agent") {
		t.Errorf("the model saw %q", slices.Compact(results))
	}
}
