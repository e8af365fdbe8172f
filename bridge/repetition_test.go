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
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
)

// noPython is a sandbox whose Python says why it does not start.
func noPython(ctx context.Context, p oci.Process) (Sandbox, error) {
	_, _ = io.WriteString(p.Stderr, "loading the interpreter\nFatal Python error: no module named encodings\n")
	p.Stdout.Close()
	p.Stderr.Close()
	ours, theirs := net.Pipe()
	theirs.Close()
	sb := startFake(ctx, func(context.Context, <-chan int) (oci.Exit, error) { return oci.Exit{Code: 1}, nil })
	sb.conn = ours
	return sb, nil
}

// TestNothingIsSaidTwice has runs end in every status, and looks for a sentence that is
// in a text twice: on two lines, or as a part of another line.
func TestNothingIsSaidTwice(t *testing.T) {
	t.Parallel()
	failing := &halfSearched{fakeUpstreams{}.Proxy(t, bridgetest.Options{}), [][]config.Problem{{{Server: "sqlite", Status: config.StatusFailed, Reason: "it exited: exit status 3"}}}}
	refuses := func(context.Context, oci.Process) (Sandbox, error) {
		return nil, &doctor.HintError{Err: errors.New("making the sandbox: no user namespaces"), Hint: "sysctl -w user.max_user_namespaces=10000"}
	}
	for name, tt := range map[string]struct {
		status, code string
		change       func(*Options)
	}{
		"a value":                {StatusSuccess, "1 + 1", nil},
		"nothing":                {StatusSuccess, "pass", nil},
		"output":                 {StatusSuccess, "import sys\nprint('all went as it should')\nprint('careful with that', file=sys.stderr)", nil},
		"an exception":           {StatusError, "def f():\n    raise ValueError('the value is wrong')\nf()", nil},
		"of several lines":       {StatusError, "raise ValueError('\\n'.join(['the value is', 'wrong']) + ' and has two lines')", nil},
		"a chain":                {StatusError, "try:\n    {}['key']\nexcept KeyError as e:\n    raise ValueError('nothing under that key') from e", nil},
		"a syntax error":         {StatusError, "print(1)\ndef f(:\n    pass", nil},
		"an advising one":        {StatusError, "print 'a long line of text'", nil},
		"an indentation":         {StatusError, "if True:\npass", nil},
		"a slip":                 {StatusError, "pritn('all of it')", nil},
		"a missing module":       {StatusError, "import no_such_package", nil},
		"a missing server":       {StatusError, "mcp_servers['githb']", nil},
		"its module":             {StatusError, "import mcp.servers.githb", nil},
		"its object":             {StatusError, "mcp_githb.list_issues()", nil},
		"a call without a grant": {StatusError, "await mcp_github.write()", nil},
		"exit":                   {StatusError, "import sys; sys.exit('that is all there is')", nil},
		"a signal":               {StatusError, "import os; os.kill(os.getpid(), 9)", nil},
		"the memory limit": {StatusMemory, "import os; os.kill(os.getpid(), 9)", func(o *Options) {
			o.Sandboxes = withExit(o.Sandboxes, func(exit oci.Exit, err error) (oci.Exit, error) { exit.OOM = true; return exit, err })
		}},
		"a timeout":  {StatusTimeout, "import time\nprint('so far so good')\ntime.sleep(60)", nil},
		"no code":    {StatusValidation, " ", nil},
		"no sandbox": {StatusSandbox, "1", func(o *Options) { o.Sandboxes = startFunc(refuses) }},
		"no image": {StatusSandbox, "1", func(o *Options) {
			o.Rootfs = func(context.Context, func(int64, int64, string)) (Image, error) {
				return Image{}, errors.New("pulling the image: no such host")
			}
		}},
		"no Python": {StatusSandbox, "1", func(o *Options) { o.Sandboxes = startFunc(noPython) }},
		"a search": {StatusSuccess, "from mcp import runtime\nawait runtime.search_tool_docs('rows of a table')\nawait runtime.search_tool_docs('rows')", func(o *Options) {
			failing.problems = append(failing.problems, failing.problems[0])
			o.Upstreams = failing
		}},
	} {
		t.Run(name, func(t *testing.T) {
			up := fakeUpstreams{"github": {"write": func(context.Context, json.RawMessage) (string, error) { return "", nil }}}
			s := newServer(t, up, tt.change)
			req := Request{Code: tt.code, Timeout: 2 * time.Minute}
			if tt.status == StatusTimeout {
				req.Timeout = 3 * time.Second
			}
			r := s.Run(t.Context(), req)
			if r.Status != tt.status {
				t.Fatalf("%s: %s", r.Status, r.Text(OutputCompact))
			}
			for _, mode := range []OutputMode{OutputCompact, OutputTOON, OutputJSON} {
				said := saidTwice(r.Text(mode))
				if said != "" {
					t.Errorf("%s says twice %q:\n%s", mode, said, r.Text(mode))
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
