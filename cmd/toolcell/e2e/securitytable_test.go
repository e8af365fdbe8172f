package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// securityPage has the table that the tests write.
const securityPage = "../../../docs/security.md"

// A mode is a kind of host in the table, and where its reports are among those
// that TOOLCELL_REPORT's folder has: a folder for each machine, in it
// <host>.limits.json, <host>.neighbor.json and <host>.battery.json.
type mode struct{ name, report string }

var modes = []mode{
	{"root, cgroup v1", "here/root"},
	{"root, cgroup v2", "r/root"},
	{"user, systemd, subordinate ids", "a/self"},
	{"the same, over ssh", "s/self"},
	{"the same, from a service", "e/self"},
	{"the same, no subordinate ids", "ab/self"},
	{"user, from a service, no cgroup to be had", "d/self"},
	{"user, cgroup v1 and so none, subordinate ids", "here/user"},
	{"user, cgroup v1 and so none, no subordinate ids", "here/user-one-id"},
	{"unprivileged container, cgroup v1", "here/no-proc"},
	{"unprivileged container of root, cgroup v2", "r/no-proc"},
	{"unprivileged container of a user, systemd", "a/no-proc"},
}

// limitColumns are the groups of limits.
var limitColumns = []string{"memory", "processes", "time", "space", "output"}

// columns are those of the table. The last ones are reports of their own.
var columns = append(slices.Clone(limitColumns), "neighbor", "battery")

// TestSecurityTable writes the table from reports, if TOOLCELL_TABLE names
// their folder. Otherwise it checks that the table is of these modes, with as
// many cases as there are now, and that all of them held.
func TestSecurityTable(t *testing.T) {
	page, err := os.ReadFile(securityPage)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs the source")
	}
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), "by hand -->\n")
	table, after, ok2 := strings.Cut(rest, "<!-- end of table -->")
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", securityPage)
	}
	if dir := os.Getenv("TOOLCELL_TABLE"); dir != "" {
		table = securityTable(t, dir)
		if err := os.WriteFile(securityPage, []byte(before+"by hand -->\n"+table+"<!-- end of table -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkTable(t, table)
}

func checkTable(t *testing.T, table string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != len(modes)+2 {
		t.Fatalf("the table has %d lines, want %d: run make test-vm", len(lines), len(modes)+2)
	}
	cases := map[string]int{}
	for _, tt := range limitCases {
		cases[tt.group]++
	}
	shown := strings.Split(strings.Trim(lines[0], "| "), " | ")[2:]
	if !slices.Equal(shown, columns) {
		t.Fatalf("the columns are %q, want %q: run make table", shown, columns)
	}
	for i, m := range modes {
		cells := strings.Split(strings.Trim(lines[i+2], "| "), " | ")
		if len(cells) != len(shown)+2 || cells[0] != m.name || cells[1] != "yes" {
			t.Errorf("row %q, want %q, which starts", lines[i+2], m.name)
			continue
		}
		for j, column := range shown {
			var held, all int
			if _, err := fmt.Sscanf(cells[j+2], "%d of %d", &held, &all); err != nil || held != all || all == 0 {
				t.Errorf("%s, %s: %q", m.name, column, cells[j+2])
			}
			if slices.Contains(limitColumns, column) && all != cases[column] {
				t.Errorf("%s, %s: %d cases in the table, %d in the test: run make test-vm", m.name, column, all, cases[column])
			}
		}
	}
}

func securityTable(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| host | starts | %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, m := range modes {
		limits := readReport(t, dir, m, "limits")
		starts := "no"
		if slices.Contains(values(limits), true) {
			starts = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s |", m.name, starts)
		for _, column := range columns {
			held, all := 0, 0
			var cases map[string]bool
			if slices.Contains(limitColumns, column) {
				cases = groupOf(limits, column)
			} else {
				cases = readReport(t, dir, m, column)
			}
			for _, ok := range cases {
				all++
				if ok {
					held++
				}
			}
			fmt.Fprintf(&b, " %d of %d |", held, all)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func values(m map[string]bool) (out []bool) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// groupOf gives the cases of one column.
func groupOf(limits map[string]bool, group string) map[string]bool {
	out := map[string]bool{}
	for _, tt := range limitCases {
		if held, ok := limits[tt.name]; ok && tt.group == group {
			out[tt.name] = held
		}
	}
	return out
}

func readReport(t *testing.T, dir string, m mode, what string) map[string]bool {
	t.Helper()
	var held map[string]bool
	body, err := os.ReadFile(filepath.Join(dir, m.report+"."+what+".json"))
	if err == nil {
		err = json.Unmarshal(body, &held)
	}
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	return held
}
