package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
)

// A startFunc starts sandboxes.
type startFunc func(ctx context.Context, p oci.Process) (run.Sandbox, error)

func (f startFunc) Start(ctx context.Context, p oci.Process) (run.Sandbox, error) { return f(ctx, p) }

// outOfMemory is a sandbox that has reached its memory limit.
type outOfMemory struct{ run.Sandbox }

func (s outOfMemory) Wait() (oci.Exit, error) {
	exit, err := s.Sandbox.Wait()
	exit.OOM = true
	return exit, err
}

// noPython is a sandbox whose Python says why it does not start.
func noPython(ctx context.Context, p oci.Process) (run.Sandbox, error) {
	_, _ = io.WriteString(p.Stderr, "loading the interpreter\nFatal Python error: no module named encodings\n")
	p.Stdout.Close()
	p.Stderr.Close()
	ours, theirs := net.Pipe()
	theirs.Close()
	sb := bridgetest.StartFake(ctx, func(context.Context, <-chan int) (oci.Exit, error) { return oci.Exit{Code: 1}, nil })
	sb.Socket = ours
	return sb, nil
}

// TestNothingIsSaidTwice has runs end in every status, and looks for a sentence that is
// in a text twice: on two lines, or as a part of another line.
//
//test:long
func TestNothingIsSaidTwice(t *testing.T) {
	t.Parallel()
	failing := mcpproxy.New(config.Config{Servers: []config.Server{{Name: "sqlite", Alias: "sqlite", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", "exit 3"}}}}, mcpproxy.Options{})
	t.Cleanup(func() { _ = failing.Close() })
	refuses := func(context.Context, oci.Process) (run.Sandbox, error) {
		return nil, &doctor.HintError{Err: errors.New("making the sandbox: no user namespaces"), Hint: "sysctl -w user.max_user_namespaces=10000"}
	}
	for name, tt := range map[string]struct {
		status, code string
		change       func(*run.Options)
	}{
		"a value":                {run.StatusSuccess, "1 + 1", nil},
		"nothing":                {run.StatusSuccess, "pass", nil},
		"output":                 {run.StatusSuccess, "import sys\nprint('all went as it should')\nprint('careful with that', file=sys.stderr)", nil},
		"an exception":           {run.StatusError, "def f():\n    raise ValueError('the value is wrong')\nf()", nil},
		"of several lines":       {run.StatusError, "raise ValueError('\\n'.join(['the value is', 'wrong']) + ' and has two lines')", nil},
		"a chain":                {run.StatusError, "try:\n    {}['key']\nexcept KeyError as e:\n    raise ValueError('nothing under that key') from e", nil},
		"a syntax error":         {run.StatusError, "print(1)\ndef f(:\n    pass", nil},
		"an advising one":        {run.StatusError, "print 'a long line of text'", nil},
		"an indentation":         {run.StatusError, "if True:\npass", nil},
		"a slip":                 {run.StatusError, "pritn('all of it')", nil},
		"a missing module":       {run.StatusError, "import no_such_package", nil},
		"a missing server":       {run.StatusError, "mcp_servers['githb']", nil},
		"its module":             {run.StatusError, "import mcp.servers.githb", nil},
		"its object":             {run.StatusError, "mcp_githb.list_issues()", nil},
		"a call without a grant": {run.StatusError, "await mcp_github.write()", nil},
		"exit":                   {run.StatusError, "import sys; sys.exit('that is all there is')", nil},
		"a signal":               {run.StatusError, "import os; os.kill(os.getpid(), 9)", nil},
		"the memory limit": {run.StatusMemory, "import os; os.kill(os.getpid(), 9)", func(o *run.Options) {
			inner := o.Sandboxes
			o.Sandboxes = startFunc(func(ctx context.Context, p oci.Process) (run.Sandbox, error) {
				sb, err := inner.Start(ctx, p)
				return outOfMemory{sb}, err
			})
		}},
		"a timeout":  {run.StatusTimeout, "import time\nprint('so far so good')\ntime.sleep(60)", nil},
		"no code":    {run.StatusValidation, " ", nil},
		"no sandbox": {run.StatusSandbox, "1", func(o *run.Options) { o.Sandboxes = startFunc(refuses) }},
		"no image": {run.StatusSandbox, "1", func(o *run.Options) {
			o.Rootfs = func(context.Context, func(int64, int64, string)) (run.Image, error) {
				return run.Image{}, errors.New("pulling the image: no such host")
			}
		}},
		"no Python": {run.StatusSandbox, "1", func(o *run.Options) { o.Sandboxes = startFunc(noPython) }},
		"a search": {run.StatusSuccess, "from mcp import runtime\nawait runtime.search_tool_docs('rows of a table')\nawait runtime.search_tool_docs('rows')", func(o *run.Options) {
			o.Upstreams = failing
		}},
	} {
		t.Run(name, func(t *testing.T) {
			up := fakeUpstreams{"github": {"write": func(context.Context, json.RawMessage) (string, error) { return "", nil }}}
			s := newServer(t, up, tt.change)
			req := run.Request{Code: tt.code, Timeout: 2 * time.Minute}
			if tt.status == run.StatusTimeout {
				req.Timeout = 3 * time.Second
			}
			r := s.runs.Do(t.Context(), req)
			if r.Status != tt.status {
				t.Fatalf("%s: %s", r.Status, Text(r, OutputCompact))
			}
			for _, mode := range []OutputMode{OutputCompact, OutputTOON, OutputJSON} {
				said := saidTwice(Text(r, mode))
				if said != "" {
					t.Errorf("%s says twice %q:\n%s", mode, said, Text(r, mode))
				}
			}
		})
	}
}

// saidTwice returns a line of at least three words that is in the text twice, without
// the field or the label before it; "" if there is none.
func saidTwice(text string) string {
	var said []string
	for line := range strings.Lines(strings.NewReplacer(`","`, "\n", `,"`, "\n").Replace(text)) { // TOON has a list on one line
		line = strings.Trim(strings.TrimSpace(line), `",[]{}`)
		for _, label := range []string{"error: ", "hint: ", "note: ", `summary": "`, `error": "`, `hint": "`, "summary: ", `result": "`} {
			line = strings.TrimPrefix(line, label)
		}
		if len(strings.Fields(line)) < 3 || strings.HasPrefix(line, "File ") || strings.HasPrefix(line, "Traceback ") {
			continue
		}
		for _, before := range said {
			if strings.Contains(before, line) || strings.Contains(line, before) {
				return line
			}
		}
		said = append(said, line)
	}
	return ""
}
