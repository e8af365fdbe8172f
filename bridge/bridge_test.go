package bridge

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
)

func TestMain(m *testing.M) { bridgetest.Main(m) }

// fakeUpstreams are servers whose tools are Go functions.
type fakeUpstreams = bridgetest.Servers

// hostSandboxes run the host's python3.
type hostSandboxes struct{ bridgetest.HostSandboxes }

func (h hostSandboxes) Start(ctx context.Context, p oci.Process) (run.Sandbox, error) {
	return h.HostSandboxes.Start(ctx, p)
}

// newServer makes a server on the host's python3.
func newServer(t *testing.T, up fakeUpstreams, change func(*run.Options)) *Server {
	t.Helper()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("no /usr/bin/python3: apt-get install python3")
	}
	o := run.Options{
		Rootfs: func(context.Context, func(int64, int64, string)) (run.Image, error) {
			return run.Image{Python: python}, nil
		},
		Sandboxes: hostSandboxes{bridgetest.HostSandboxes{Dir: t.TempDir()}}, RunnerDir: bridgetest.RunnerDir(t, runner.Write), ToolsDir: filepath.Join(t.TempDir(), "tools"),
		Policy: policy.None(),
	}
	if change != nil {
		change(&o)
	}
	if o.Upstreams == nil {
		o.Upstreams = up.Proxy(t, bridgetest.Options{})
	}
	runs := run.New(o)
	t.Cleanup(runs.Close)
	return New(runs, Options{})
}

// runCode runs code with the longest timeout there is: the machine may be busy.
func runCode(t *testing.T, s *Server, code string, servers ...string) *run.Result {
	t.Helper()
	return s.runs.Do(t.Context(), run.Request{Code: code, Servers: servers, Timeout: 2 * time.Minute})
}

func TestOutputIsBoundedAndTheCutIsSaid(t *testing.T) {
	s := newServer(t, nil, func(o *run.Options) { o.MaxOutput = 1000 })
	r := runCode(t, s, "print('first')\nfor i in range(10000): print(i)\nprint('last')")
	text := Text(r, OutputCompact)
	if !r.Truncated || len(text) > 1300 || r.Stdout[0] != "first" || r.Stdout[len(r.Stdout)-1] != "last" || !strings.Contains(text, " KiB) left out") {
		t.Errorf("truncated %v, %d bytes:\n%s", r.Truncated, len(text), text)
	}
}
