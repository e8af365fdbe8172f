package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fixture builds the server that the suite's scenarios expect. It is the one that the Go
// SDK has for them, and speaks all versions of the protocol.
var fixture = sync.OnceValues(func() (string, error) {
	path := filepath.Join(shared, "fixture")
	out, err := exec.Command("go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the suite's fixture: %w\n%s", err, out)
	}
	return path, nil
})

// legacyPrefix begins the name of a fake server that is a program of before 2026-07-28.
const legacyPrefix = "legacy:"

// legacyServer runs a server and keeps from it that clients speak 2026-07-28: it asks the
// user in requests of its own then.
func legacyServer(path string) error {
	cmd := exec.Command(path)
	cmd.Stdout = os.Stdout
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return errors.Join(in.Close(), cmd.Wait())
		}
		var m suiteMessage
		if json.Unmarshal(line, &m) == nil && m.Method == "server/discover" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", m.ID)
			continue
		}
		if _, err := in.Write(line); err != nil {
			return err
		}
	}
}

// TestServerConformance runs the server scenarios of the official suite against toolcell
// with their fixture behind it, and compares the outcome with the table in
// docs/conformance.md.
func TestServerConformance(t *testing.T) {
	node, suite := npmProgram(t, "node"), npmProgram(t, "conformance")
	table, all := conformanceTable(t, "toolcell as a server"), scenarios(t, node, suite, "--server")
	for name := range table {
		known := func(s scenario) bool { return name == s.name || strings.HasPrefix(name, s.name+" at ") }
		if !slices.ContainsFunc(all, known) {
			t.Errorf("docs/conformance.md has %s, which the suite has not", name)
		}
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			outcomes := runServerScenarios(t, node, suite, version)
			for _, s := range all {
				if !slices.Contains(s.versions, version) {
					continue
				}
				row, found := table[s.name+" at "+version]
				if !found {
					row, found = table[s.name]
				}
				if !found {
					t.Errorf("%s is missing in docs/conformance.md", s.name)
				}
				if row.result != "does not apply" { // it is about the adapter
					t.Run(s.name, func(t *testing.T) {
						row.compare(t, outcomes[s.name])
						outcomes[s.name].wantAnswers(t)
					})
				}
			}
		})
	}
}

// answers are what the fixture says of the user's answers. The suite is content with any
// result.
var answers = map[string]string{
	"tools-call-elicitation":          "testuser",
	"sep-2322-elicitation-complete":   "Hello, Alice!",
	"sep-2322-request-state-complete": "state-ok",
	"sep-2322-multi-round-r3":         "Alice likes blue",
	"sep-2322-non-tool-complete":      "Context: test context",
}

// wantAnswers fails the test if an answer did not reach the fixture.
func (o outcome) wantAnswers(t *testing.T) {
	t.Helper()
	for _, c := range o.checks {
		if want := answers[c.ID]; !bytes.Contains(c.Details.Result, []byte(want)) {
			t.Errorf("%s: the result of the fixture has no %q: %s", c.ID, want, c.Details.Result)
		}
	}
}

// resultFolder is where the suite writes what came of a scenario.
var resultFolder = regexp.MustCompile(`/server-([^/]+)-\d{4}-\d\d-\d\dT[^/]*/checks.json$`)

// runServerScenarios runs all scenarios of a version, which one process of the suite does
// in a fraction of the time that one for each would take.
func runServerScenarios(t *testing.T, node, suite, version string) map[string]outcome {
	t.Helper()
	server := httptest.NewServer(newSuiteAdapter(t))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, suite, "server", "--url", server.URL, "--suite", "all", "--spec-version", version,
		"--timeout", "120000", "-o", dir)
	printed, err := cmd.CombinedOutput() // the error says no more than the checks
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if len(files) < 25 {
		t.Fatalf("the suite ran %d scenarios: %v\n%s", len(files), err, printed)
	}
	outcomes := map[string]outcome{}
	for _, file := range files {
		m := resultFolder.FindStringSubmatch(file)
		if m == nil {
			t.Fatalf("the suite wrote %s", file)
		}
		o := outcome{checks: readChecks(t, file), content: true}
		for _, c := range o.checks {
			o.output += fmt.Sprintf("%s: %s %s\n", c.Status, c.ID, c.ErrorMessage)
		}
		outcomes[m[1]] = o
	}
	return outcomes
}

// newSuiteAdapter has the fixture behind toolcell. Clients of before 2026-07-28 get it as
// a server of then.
func newSuiteAdapter(t *testing.T) *suiteAdapter {
	t.Helper()
	h := firstHost(t)
	path, err := fixture()
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &syncBuffer{}
	a := &suiteAdapter{sessions: map[string]*suiteSession{}, command: func(legacy bool) *exec.Cmd {
		entry := map[string]any{"command": path}
		if legacy {
			entry = map[string]any{"command": fake, "env": map[string]string{fakeServerEnv: legacyPrefix + path}}
		}
		config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"fixture": entry}})
		cmd := h.command(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config}, "serve")
		cmd.Stderr = stderr
		return cmd
	}}
	t.Cleanup(func() {
		a.endAll()
		if t.Failed() {
			t.Logf("stderr of toolcell:\n%s", stderr)
		}
	})
	return a
}
