package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	whole := strings.Repeat("0123456789", 100)
	for _, chunk := range []int{1, 3, 7, 10, 99, 1000} {
		c := newCapture(40)
		for rest := whole; rest != ""; {
			n := min(chunk, len(rest))
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		head, tail, omitted := c.Bytes()
		if string(head) != whole[:10] || string(tail) != whole[len(whole)-30:] || omitted != int64(len(whole)-40) {
			t.Errorf("chunks of %d: %q … %q, %d omitted", chunk, head, tail, omitted)
		}
	}
}

func TestLines(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "%03d\n", i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		limit int
		in    string
		want  string
		cut   bool
	}{
		"nothing":               {100, "", "", false},
		"blank ends, kept core": {100, "\n \na\n  \nb\n\n", "a|  |b", false},
		"carriage returns":      {100, "a\r\nb\r\n", "a|b", false},
		"leading space is kept": {100, "  a\n", "  a", false},
		"exactly the limit":     {4, "abcd", "abcd", false},
		"no half characters":    {12, "aéééééééé", "aé|… 6 bytes left out|éééé", true},
		"nor half a first one":  {16, "aéééééééééééé", "aé|… 10 bytes left out|éééééé", true},
		"whole lines":           {42, numbers(0, 500), "000|001|… 491 lines (1.9 KiB) left out|493|494|495|496|497|498|499", true},
		"no line is cut":        {40, numbers(0, 500), "000|001|… 491 lines (1.9 KiB) left out|493|494|495|496|497|498|499", true},
		"many lines":            {32, numbers(0, 999) + numbers(0, 999), "000|001|… 1,991 lines (7.8 KiB) left out|994|995|996|997|998", true},
		"one long line":         {16, strings.Repeat("x", 3000), "xxxx|… 2.9 KiB left out|xxxxxxxxxxxx", true},
		"a long last line":      {16, "ab\n" + strings.Repeat("x", 3000), "ab|… 2.9 KiB left out|xxxxxxxxxxxx", true},
	} {
		w := &Pipes{limit: tt.limit, Stdout: newCapture(tt.limit), Stderr: newCapture(tt.limit / 4)}
		if _, err := w.Stdout.Write([]byte(tt.in)); err != nil {
			t.Fatal(err)
		}
		lines, none, cut := w.Lines()
		if got := strings.Join(lines, "|"); got != tt.want || cut != tt.cut || none != nil {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, cut, tt.want, tt.cut)
		}
	}
}

// TestStreamsShareTheLimit: stderr has a quarter at most, stdout what it leaves. What
// does not fit is in a file, also if it would have fitted alone.
func TestStreamsShareTheLimit(t *testing.T) {
	const limit = 4000
	for _, tt := range []struct {
		out, err         int    // bytes written
		keptOut, keptErr int    // bytes in the result
		files            string // that are kept
	}{
		{4000, 0, 4000, 0, ""},
		{3900, 100, 3900, 100, ""},
		{3950, 100, 3900, 100, "stdout.txt"},
		{100, 1000, 100, 1000, ""},
		{100, 1001, 100, 1000, "stderr.txt"},
		{3001, 5000, 3000, 1000, "stdout.txt stderr.txt"},
		{50_000, 50_000, 3000, 1000, "stdout.txt stderr.txt"},
	} {
		dir := t.TempDir()
		w := &Pipes{limit: limit, Stdout: newCapture(limit), Stderr: newCapture(limit / 4)}
		w.KeepWhole(func() (*os.File, error) { return os.CreateTemp(dir, "") }, false, false)
		for _, part := range []int{1, 2} { // a stream may grow too long at any time
			_, err1 := w.Stdout.Write(bytes.Repeat([]byte("O"), part*tt.out/2-(part-1)*(tt.out/2)))
			_, err2 := w.Stderr.Write(bytes.Repeat([]byte("E"), part*tt.err/2-(part-1)*(tt.err/2)))
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
		}
		var files []string
		w.Finish(func(k Spilled, named func(string)) {
			files = append(files, k.Name)
			named("uri:" + k.Name)
			if size := map[string]int{"stdout.txt": tt.out, "stderr.txt": tt.err}[k.Name]; k.Size != int64(size) {
				t.Errorf("%+v: %s has %d bytes", tt, k.Name, k.Size)
			}
		})
		stdout, stderr, cut := w.Lines()
		all := strings.Join(append(stdout, stderr...), "\n")
		if out, err := strings.Count(all, "O"), strings.Count(all, "E"); out != tt.keptOut || err != tt.keptErr {
			t.Errorf("%+v: %d and %d bytes are left", tt, out, err)
		}
		if cut != (tt.files != "") || strings.Join(files, " ") != tt.files {
			t.Errorf("%+v: cut %v, files %v", tt, cut, files)
		}
		for _, file := range files {
			if !strings.Contains(all, "left out; all of it: uri:"+file) {
				t.Errorf("%+v: %.300s does not name %s", tt, all, file)
			}
		}
	}
}

// TestLinesAreBounded: of a great many lines, a result has the first and the last.
func TestLinesAreBounded(t *testing.T) {
	for _, lines := range []int{maxLines, maxLines + 1, maxLines + 2, 3 * maxLines, 10 * maxLines} {
		c := newCapture(1 << 20)
		text := "first\n" + strings.Repeat("\n", lines-2) + "last"
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got, cut := c.lines(1 << 20)
		if got[0] != "first" || got[len(got)-1] != "last" || cut != (lines > maxLines+1) || len(got) > maxLines+1 {
			t.Errorf("of %d lines there are %d, cut: %v", lines, len(got), cut)
		}
	}
}

// TestControlCharactersCountAsInJSON: a result is JSON too, where each takes six
// bytes.
func TestControlCharactersCountAsInJSON(t *testing.T) {
	for name, tt := range map[string]struct {
		printed string
		whole   bool
	}{
		"text":              {strings.Repeat("0123456789\n\t\r", 60), true},
		"a few":             {strings.Repeat("\x1b[1mword\x1b[0m\n", 36), true},
		"nothing but these": {strings.Repeat("\x01", 400), false},
		"just enough":       {strings.Repeat("\x01", 166), true},
	} {
		p, err := Open(1000)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.ChildOut.WriteString(tt.printed)
		p.Settle()
		lines, _, cut := p.Lines()
		encoded, err := json.Marshal(strings.Join(lines, "\n"))
		if err != nil || cut == tt.whole || len(encoded) > 1100 {
			t.Errorf("%s: cut is %v, %d bytes of JSON, %v", name, cut, len(encoded), err)
		}
		p.Close()
	}
}

// TestAValueSharesTheRoomOfAResult with what was printed.
func TestAValueSharesTheRoomOfAResult(t *testing.T) {
	for name, tt := range map[string]struct {
		stdout, stderr, value int
		seen                  bool
		wantValue, wantOut    int
	}{
		"nothing printed":   {0, 0, 2000, false, 1000, 0},
		"both short":        {300, 0, 200, false, 200, 300},
		"the value is long": {300, 100, 2000, false, 600, 300},
		"both long":         {5000, 0, 2000, false, 250, 750},
		"all long":          {5000, 5000, 2000, false, 250, 563},
		"printed already":   {5000, 5000, 2000, true, 1000, 750},
	} {
		p, err := Open(1000)
		if err != nil {
			t.Fatal(err)
		}
		p.KeepWhole(nil, tt.seen, tt.seen)
		_, _ = p.ChildOut.WriteString(strings.Repeat("x", tt.stdout))
		_, _ = p.ChildErr.WriteString(strings.Repeat("y", tt.stderr))
		p.Settle()
		value := p.MakeRoom(tt.value)
		stdout, _, _ := p.Lines()
		if out := strings.Count(strings.Join(stdout, ""), "x"); value != tt.wantValue || out != tt.wantOut {
			t.Errorf("%s: %d of the value, %d of stdout; want %d and %d", name, value, out, tt.wantValue, tt.wantOut)
		}
		p.Close()
	}
}
