package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// writeRun writes a run with two calls, of which the second writes something.
func writeRun(t testing.TB, j *record.Journal, id string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := j.Begin(id, "")
	must(run.Append(record.RunStart{
		Command: "serve", Client: record.Client{Name: "claude-code", Version: "2.1.0", Era: "2025-11-25"}, User: "ada",
		Code: record.TextOf("print(await mcp_github.list_issues())"), Grants: record.Grants{Servers: []string{"github"}},
	}))
	for n, tool := range []string{"list_issues", "add_label"} {
		call, writes := run.NextCall(), n == 1
		must(run.Append(record.CallStart{Call: call, Effect: "tools/call", Server: "github", Tool: tool, Arguments: record.TextOf(`{"number":9007199254740993}`), Writes: writes, By: "pin"}))
		must(run.Append(record.CallEnd{Call: call, Server: "github", Tool: tool, Outcome: record.OK, Writes: writes, Duration: 1500, Answer: record.TextOf(`{"content":[]}`)}))
	}
	out := run.NewStream()
	fmt.Fprintln(out, "done")
	must(run.Append(record.RunEnd{Status: "success", Stdout: out.Text(), Calls: 2, Duration: 4000}))
}

// a finished record: one file that is complete, of 12 entries.
func writeRecord(t testing.TB) (r *Record, name string) {
	t.Helper()
	r = Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	writeRun(t, j, "aaaaaaaaaa")
	writeRun(t, j, "bbbbbbbbbb")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return r, onlyFile(t, r)
}

// onlyFile returns the name of the one file of entries.
func onlyFile(t testing.TB, r *Record) string {
	t.Helper()
	names := allFiles(t, r)
	if len(names) != 1 {
		t.Fatalf("files %q, want one", names)
	}
	return names[0]
}

func allFiles(t testing.TB, r *Record) (names []string) {
	t.Helper()
	days, err := r.days()
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range days {
		some, err := r.files(day)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, some...)
	}
	return names
}

// edit changes the lines of a file.
func edit(t testing.TB, r *Record, name string, change func(lines [][]byte) [][]byte) {
	t.Helper()
	data, err := os.ReadFile(r.path(name))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(bytes.SplitAfter(data, []byte{'\n'}), func(l []byte) bool { return len(l) == 0 })
	if err := os.WriteFile(r.path(name), bytes.Join(change(lines), nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, r *Record, heads ...Head) *Report {
	t.Helper()
	report, err := r.Verify(heads)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// texts returns findings as lines, with NAME, LIST and VALUES for the names of the files.
func texts(name string, all []Finding) (out []string) {
	base := strings.TrimPrefix(filepath.Base(name), "vm")
	short := strings.NewReplacer(record.ValuesName(name), "VALUES", name, "NAME", filepath.Dir(name)+"/"+record.IndexName, "LIST", filepath.Dir(name), "DAY", base, "-BASE")
	for _, f := range all {
		out = append(out, short.Replace(f.String()))
	}
	return out
}
