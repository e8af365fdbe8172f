package timeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// recorded returns what is read of a run that was written so.
func recorded(t *testing.T, o record.Options, entries ...record.Entry) *Timeline {
	t.Helper()
	o.Dir, o.Host = t.TempDir(), "vm"
	j := record.Open(o)
	run := j.Begin("aaaabbbbcccc", "")
	for _, e := range entries {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r := history.Open(o.Dir)
	all, err := r.Show("aaaabbbbcccc")
	if err != nil {
		t.Fatal(err)
	}
	of := history.Run{ID: all[0].Run, Start: all[0].Time, Status: history.StatusKilled} // if its beginning is torn
	for found, err := range r.Runs(history.Filter{}) {
		if of = found; err != nil {
			t.Fatal(err)
		}
	}
	return New(of, all)
}

// printed returns what a person reads in a file.
func printed(t *testing.T, tl *Timeline, o Options) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := tl.Print(out, o); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// contain looks for all of them in a text.
func contain(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%.20000s", want, text)
		}
	}
}

// TestSavedToolsAreInTheStory in the order of what was done with them.
func TestSavedToolsAreInTheStory(t *testing.T) {
	out := printed(t, recorded(t, record.Options{}, record.RunStart{},
		record.File{Name: "user_tools.first", Use: "saved", Size: 1500, SHA256: strings.Repeat("0", 64)},
		record.File{Name: "user_tools.first", Use: "given", Size: 1500},
		record.File{Name: "user_tools.first", Use: "removed"},
		record.File{Name: "plot.png", Use: "left", Type: "image/png", Size: 10},
	), Options{})
	_, story, _ := strings.Cut(out, "WHAT IT DID\n")
	var said []string
	for line := range strings.Lines(story) {
		_, what, _ := strings.Cut(line, "s  ")
		said = append(said, strings.TrimSpace(what))
	}
	if got, want := strings.Join(said, "|"), "file      saved: user_tools.first, 1.5 KiB|file      given: user_tools.first, 1.5 KiB|"+
		"file      removed: user_tools.first|file      left: plot.png, 10 bytes image/png"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRefusedCallsStandAtTheirLines, also without a verdict. One whose line the code does not have is
// named below it.
func TestRefusedCallsStandAtTheirLines(t *testing.T) {
	out := printed(t, recorded(t, record.Options{},
		record.RunStart{Code: record.TextOf("a()\nb()\nc()\n")},
		record.CallEnd{Call: 1, Line: 2, Server: "up", Tool: "nothing", Outcome: record.Refused, Error: record.TextOf("no such tool")},
		record.CallEnd{Call: 2, Line: 2, Server: "up", Tool: "nothing", Outcome: record.Refused},
		record.CallEnd{Call: 3, Line: 99, Server: "up", Tool: "nothing", Outcome: record.Refused},
		record.CallEnd{Call: 4, Server: "up", Tool: "nothing", Outcome: record.Refused},
	), Options{})
	contain(t, out,
		"\n          1  a()\n  #1-2    2  b()\n          3  c()\n  #3-4, whose lines are not known or not here\n",
		"#1   up.nothing          refused, nothing was sent\n                  error: no such tool\n",
		"did       no calls, 4 not sent\n")
}
