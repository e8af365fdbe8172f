package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// conformanceRow is what docs/conformance.md says of a scenario.
type conformanceRow struct {
	result string
	fails  []string // ids of checks
}

// TestConformance runs the client scenarios of the official suite against the binary,
// and compares the outcome with the table in docs/conformance.md.
func TestConformance(t *testing.T) {
	node, suite := npmProgram(t, "node"), npmProgram(t, "conformance")
	table := conformanceTable(t, "the user's servers")
	for _, scenario := range scenarios(t, node, suite, "--client") {
		row, ok := table[scenario.name]
		if !ok {
			t.Errorf("%s is missing in docs/conformance.md", scenario.name)
		}
		delete(table, scenario.name)
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			row.compare(t, runScenario(t, node, suite, scenario.name))
		})
	}
	for name := range table {
		t.Errorf("docs/conformance.md has %s, which the suite has not", name)
	}
}

// A scenario is one of the suite.
type scenario struct {
	name     string
	versions []string // of the protocol, or "extension"
}

// scenarios lists those of one side.
func scenarios(t *testing.T, node, suite, side string) (all []scenario) {
	t.Helper()
	list, err := exec.Command(node, suite, "list", side).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+) \[(.+)\]`).FindAllStringSubmatch(string(list), -1) {
		all = append(all, scenario{m[1], strings.Split(m[2], ",")})
	}
	if len(all) < 25 {
		t.Fatalf("the suite lists %s", list)
	}
	return all
}

// conformanceCheck is a check of a scenario, and what came of it.
type conformanceCheck struct {
	ID, Status, ErrorMessage string
	Details                  struct {
		TooEarly *bool
		Result   json.RawMessage
	}
}

// outcome is what came of a scenario: its checks, what was printed, and whether the
// suite is content.
type outcome struct {
	checks  []conformanceCheck
	output  string
	content bool
}

func runScenario(t *testing.T, node, suite, scenario string) (o outcome) {
	t.Helper()
	dir := t.TempDir()
	// The suite splits its command at spaces.
	cmd := exec.CommandContext(t.Context(), node, suite, "client", "--scenario", scenario, "--command", "python3 conformance.py",
		"--timeout", "120000", "-o", dir)
	cmd.Dir = "testdata"
	cmd.Env = append(os.Environ(), "TOOLCELL="+bin, "TOOLCELL_IMAGE=host", "TOOLCELL_TIMEOUT=100s")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	o = outcome{output: output.String(), content: err == nil}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	nested, _ := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json")) // a scenario's name may have a slash
	files = append(files, nested...)
	if len(files) != 1 {
		t.Fatalf("the suite wrote %q: %v\n%s", files, err, o.output)
	}
	o.checks = readChecks(t, files[0])
	return o
}

func readChecks(t *testing.T, path string) (checks []conformanceCheck) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(body, &checks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return checks
}

// hasty is the error of checks that wait for half a second or two, which may be too short
// for the machine.
var hasty = regexp.MustCompile(`^(Failed to (receive progressive|open or receive)|Logging target endpoint|Strict subscription filtering)`)

// compare reports where the outcome is another than the row says.
func (row conformanceRow) compare(t *testing.T, o outcome) {
	t.Helper()
	var failed, late []string
	passed := 0
	for _, c := range o.checks {
		switch {
		case c.ID == "client-sse-retry-timing" && c.Details.TooEarly != nil && !*c.Details.TooEarly:
			// Too late is a matter of the machine.
			if c.Status != "SUCCESS" {
				late = append(late, c.ErrorMessage)
			}
		case hasty.MatchString(c.ErrorMessage):
			late = append(late, c.ErrorMessage)
		case c.Status == "SUCCESS":
			passed++
		case (c.Status == "FAILURE" || c.Status == "WARNING") && !slices.Contains(failed, c.ID):
			failed = append(failed, c.ID)
		}
	}
	result := "passes"
	switch {
	case len(failed) > 0:
		result = "fails"
	case passed == 0:
		result = "does not apply"
	case !o.content && len(late) == 0:
		result = "ends with an error"
	}
	slices.Sort(failed)
	if result != row.result || !slices.Equal(failed, row.fails) {
		t.Errorf("it %s %q, and docs/conformance.md says that it %s %q\n%s", result, failed, row.result, row.fails, o.output)
	}
}

// conformanceTable reads the rows of docs/conformance.md below a heading that ends so.
func conformanceTable(t *testing.T, heading string) map[string]conformanceRow {
	t.Helper()
	text, err := os.ReadFile("../../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile("`([^`]+)`")
	table := map[string]conformanceRow{}
	_, section, _ := strings.Cut(string(text), heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		if len(strings.TrimSpace(cells[3])) < 10 {
			t.Errorf("no reason is stated: %s", line)
		}
		result, checks, _ := strings.Cut(strings.TrimSpace(cells[2]), ":")
		row := conformanceRow{result: result}
		for _, m := range id.FindAllStringSubmatch(checks, -1) {
			row.fails = append(row.fails, m[1])
		}
		slices.Sort(row.fails)
		table[strings.TrimSpace(strings.ReplaceAll(cells[1], "`", ""))] = row
	}
	return table
}
