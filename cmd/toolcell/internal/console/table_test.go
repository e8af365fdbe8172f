package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// TestTableFitsTheTerminal prints tables into terminals of all widths and into
// a file.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	columns := []Column{{Name: "NAME"}, {Name: "TOOLS", Right: true}, {Name: "SOURCE", End: true}, {Name: "REMARK", Wrap: true}}
	rows := func() [][]string {
		return [][]string{
			{"github", "7", "/home/ann/a/rather/long/path/to/servers.json", "fine"},
			{"日本語のサーバ", "128", "~/x.json", strings.TrimSpace(strings.Repeat("a remark with many words ", 8))},
			{"\x1b[31mred\x07\u202e", "", "two\nlines", ""},
		}
	}
	for width := uint16(1); width < 16; width++ { // too narrow for it
		_, theirs := terminaltest.Open(t, width)
		if err := PrintTable(theirs, columns, rows()); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
	}
	for width := uint16(16); width <= 140; width += 4 {
		ours, theirs := terminaltest.Open(t, width)
		if err := PrintTable(theirs, columns, rows()); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		for _, line := range readLines(ours) {
			if got := uniseg.StringWidth(line); got > int(width) {
				t.Errorf("in %d columns a line of %d: %q", width, got, line)
			}
			if strings.ContainsAny(line, "\x1b\x07\u202e") {
				t.Errorf("control characters came through: %q", line)
			}
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "table"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := PrintTable(file, columns, rows()); err != nil {
		t.Fatal(err)
	}
	body, _ := os.ReadFile(file.Name())
	want := "NAME            TOOLS  SOURCE                                        REMARK\n" +
		"github              7  /home/ann/a/rather/long/path/to/servers.json  fine\n" +
		"日本語のサーバ    128  ~/x.json                                      " + strings.TrimSpace(strings.Repeat("a remark with many words ", 8)) + "\n" +
		"[31mred                two lines\n"
	if string(body) != want {
		t.Errorf("in a file:\n%s\nwant\n%s", body, want)
	}
}

// TestIDsAreNeverCut, and a column keeps its Least while others can shrink.
func TestIDsAreNeverCut(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	columns := []Column{{Name: "RUN", Keep: true}, {Name: "STATUS", Least: 8}, {Name: "CODE"}}
	for width, want := range map[uint16]string{
		40: "RUN       STATUS          CODE\nl5tt2abc  success (1 re…  print(one, tw…",
		24: "RUN       STATUS    CODE\nl5tt2abc  success…  pri…",
		17: "RUN       STA…  …\nl5tt2abc  suc…  …",
		5:  "RUN       …  …\nl5tt2abc  …  …",
	} {
		ours, theirs := terminaltest.Open(t, width)
		if err := PrintTable(theirs, columns, [][]string{{"l5tt2abc", "success (1 refused)", "print(one, two, three)"}}); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		if got := strings.Join(readLines(ours), "\n"); got != want {
			t.Errorf("in %d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
}

// readLines reads what is on a terminal whose other end is closed.
func readLines(ours *os.File) []string {
	var all []byte
	for b := make([]byte, 4096); ; {
		n, err := ours.Read(b)
		all = append(all, b[:n]...)
		if err != nil {
			return strings.Split(strings.TrimRight(strings.ReplaceAll(string(all), "\r\n", "\n"), "\n"), "\n")
		}
	}
}

func TestCellsAreCutBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		in         string
		n          int
		start, end string
	}{
		{"server", 10, "server", ""},
		{"server", 6, "server", ""},
		{"server", 5, "serv…", "…rver"},
		{"日本語", 5, "日本…", "…本語"},
		{"日本語", 4, "日…", "…語"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…", "…e\u0301"},
		{"👩‍👩‍👧x👩‍👩‍👧", 4, "👩‍👩‍👧x…", "…x👩‍👩‍👧"},
		{"ab", 1, "…", "…"},
	} {
		if got := cut(tt.in, tt.n); got != tt.start {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.start)
		}
		if got := cutStart(tt.in, tt.n); tt.end != "" && got != tt.end {
			t.Errorf("cutStart(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.end)
		}
	}
	if got := strings.Join(Wrapped("one two abcdefghij three", 7), "|"); got != "one two|abcdef|ghij|three" {
		t.Errorf("wrapped: %q", got)
	}
}

// TestPlainIsOneLine, whatever breaks lines where it is read.
func TestPlainIsOneLine(t *testing.T) {
	if got := Plain("a\nb\rc\td\u2028e\u2029f\u0085g\vh\u202ei👩\u200d💻\xff"); got != "a b c d e fghi👩\u200d💻\uFFFD" {
		t.Errorf("got %q", got)
	}
}
