package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/hints/hintstest"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// newHintServers returns the servers of the table of hints, whose tools are Go functions.
func newHintServers(t *testing.T) *mcpproxy.Proxy {
	t.Helper()
	answer := func(context.Context, json.RawMessage) (string, error) { return "three issues", nil }
	return fakeUpstreams{"github": {"list_issues": answer}, "filesystem": {"read_text_file": answer}}.Proxy(t, bridgetest.Options{})
}

// newSilentServers returns servers of these names that never start.
func newSilentServers(t *testing.T) *mcpproxy.Proxy {
	t.Helper()
	var c config.Config
	for _, name := range []string{"filesystem", "github"} {
		c.Servers = append(c.Servers, config.Server{Name: name, Alias: name, Transport: config.Stdio, Command: "/bin/sleep", Args: []string{"600"}})
	}
	p := mcpproxy.New(c, mcpproxy.Options{})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// newHintServer makes a server with them, on a Python that has the standard library
// alone. That is a file of the repository: one that the test writes cannot be executed
// as long as a process that another test forks meanwhile holds it open (ETXTBSY).
func newHintServer(t *testing.T, change func(*Options, *Image)) *Runs {
	t.Helper()
	python, err := filepath.Abs("testdata/bare-python")
	if err != nil {
		t.Fatal(err)
	}
	up := newHintServers(t)
	return newServer(t, nil, func(o *Options) {
		image := Image{Name: "python:3.14-slim", Python: python}
		o.Upstreams, o.Sessions = up, 4
		o.Packages = func(context.Context, Image, Needs, func(int64, int64, string)) (PackageSet, error) {
			return PackageSet{}, errors.New("no code here has a header")
		}
		if change != nil {
			change(o, &image)
		}
		o.Rootfs = func(context.Context, func(int64, int64, string)) (Image, error) { return image, nil }
	})
}

// hintCases are the rows whose code alone does not lead to the hint. Each returns the
// result of the run that has it.
var hintCases = map[string]func(t *testing.T, code string) *Result{
	"`import distutils`": func(t *testing.T, _ string) *Result { // older Pythons have it
		return runCode(t, newHintServer(t, nil), "raise ModuleNotFoundError(\"No module named 'distutils'\", name='distutils')")
	},
	"in a dry run": func(t *testing.T, code string) *Result {
		return newHintServer(t, nil).Do(t.Context(), Request{Code: code, Servers: []string{"github"}, Plan: true, Timeout: 2 * time.Minute})
	},
	"which an earlier call defined": func(t *testing.T, code string) *Result {
		s := newHintServer(t, nil)
		runCode(t, s, "table = [1]")
		return runCode(t, s, code)
	},
	"which a call in session `a` defined": func(t *testing.T, code string) *Result {
		s := newHintServer(t, nil)
		s.Do(t.Context(), Request{Code: "table = [1]", Session: "a", Timeout: 2 * time.Minute})
		return runCode(t, s, code)
	},
	"which an earlier call defined, where sessions are switched off": func(t *testing.T, code string) *Result {
		s := newHintServer(t, func(o *Options, _ *Image) { o.Sessions = 0 })
		runCode(t, s, "table = [1]")
		return runCode(t, s, code)
	},
	"which an earlier call wrote": func(t *testing.T, code string) *Result {
		s := newHintServer(t, nil)
		s.written.Add("", writtenNames([]artifacts.File{{Name: "r.csv"}}))
		return runCode(t, s, code)
	},
	"which a call in session `a` wrote": func(t *testing.T, code string) *Result {
		s := newHintServer(t, nil)
		s.Do(t.Context(), Request{Code: "pass", Session: "a", Timeout: 2 * time.Minute})
		s.written.Add("a", writtenNames([]artifacts.File{{Name: "r.csv"}}))
		return runCode(t, s, code)
	},
	"a figure of plotly": func(t *testing.T, code string) *Result {
		return runCode(t, newHintServer(t, nil), "class plotly:\n  def show(self): pass\nfig = plotly()\n"+code)
	},
	"a saved tool that uses `FACTOR` and does not define it": func(t *testing.T, code string) *Result {
		s := newHintServer(t, nil)
		runCode(t, s, "from mcp import runtime\n@runtime.save_tool\ndef h(x): return eval('FACTOR * x')")
		return runCode(t, s, "FACTOR = 3\n"+code)
	},
	"while the server does not answer": func(t *testing.T, code string) *Result {
		s := newHintServer(t, func(o *Options, _ *Image) {
			o.Upstreams, o.StartTimeout = newSilentServers(t), time.Second
		})
		return s.Do(t.Context(), Request{Code: code, Servers: []string{"github"}, Timeout: 2 * time.Minute})
	},
	"stopped while a new image's modules are being compiled": func(t *testing.T, code string) *Result {
		dir := t.TempDir() // with a module that takes long to import
		if err := os.WriteFile(filepath.Join(dir, "polars.py"), []byte("import time\ntime.sleep(600)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newHintServer(t, func(o *Options, image *Image) {
			o.Sandboxes, image.Compiling = hostSandboxes{bridgetest.HostSandboxes{Dir: dir}}, true
		})
		return s.Do(t.Context(), Request{Code: code, Timeout: 3 * time.Second})
	},
}

// TestHintsAreThoseOfTheDocument runs the code of each row in docs/results.md, and
// compares the hint that comes of it with the row's.
func TestHintsAreThoseOfTheDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	number := regexp.MustCompile(`\b\d+ s\b`)
	unused := map[string]bool{}
	for name := range hintCases {
		unused[name] = true
	}
	for i, row := range hintstest.Table(t, "../..", hintstest.Anywhere) {
		name := row.Words
		if hintCases["`"+row.Code+"`"] != nil {
			name = "`" + row.Code + "`"
		}
		run := hintCases[name]
		if delete(unused, name); run == nil {
			if row.Words != "" {
				t.Errorf("%s, %s: the test does not know how to get there", row.Code, row.Words)
				continue
			}
			run = func(t *testing.T, code string) *Result { return runCode(t, newHintServer(t, nil), code, "github") }
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			r := run(t, row.Code)
			if got, want := number.ReplaceAllString(r.Hint, "n s"), number.ReplaceAllString(row.Hint, "n s"); got != want {
				t.Errorf("%s\ngot  %s\nwant %s\nof   %s %s", row.Code, got, want, r.Status, strings.Join(append(r.Stderr, r.Error), "\n"))
			}
		})
	}
	for name := range unused {
		t.Errorf("no row of the document is about: %s", name)
	}
}
