package console

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

var filterCases = map[string]struct{ in, want string }{
	"plain text":               {"a\tb\r\nc äß日本語 👩\u200d👧", "a\tb\r\nc äß日本語 👩\u200d👧"},
	"progress bar":             {"10%\r20%\r", "10%\r20%\r"},
	"colors":                   {"\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m \x1b[4:3mu\x1b[0m", "\x1b[31;1mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m \x1b[4:3mu\x1b[0m"},
	"colors in eight bits":     {"\u009b31mred\u009bm", "\x1b[31mred\x1b[m"},
	"colors left on":           {"\x1b[31mred", "\x1b[31mred\x1b[0m"},
	"black left on":            {"\x1b[38;5;0mx", "\x1b[38;5;0mx\x1b[0m"},
	"keyboard of xterm":        {"a\x1b[>4;2mb\x1b[?4mc\x1b[0 md", "abcd"},
	"too many parameters":      {"a\x1b[" + strings.Repeat("1;", 40) + "mb", "ab"},
	"clear and go home":        {"a\x1b[2J\x1b[Hb\x1bcd", "abd"},
	"question to terminal":     {"a\x1b[6n\x1b[c\x1bZ\x05b", "ab"},
	"title":                    {"a\x1b]0;owned\x07b\x1b]2;owned\x1b\\c", "abc"},
	"clipboard":                {"a\x1b]52;c;Zm9v\x1b\\b", "ab"},
	"clipboard in eight bits":  {"a\u009d52;c;Zm9v\u009cb", "ab"},
	"DCS, APC, PM and SOS":     {"a\x1bP$q\x1b\\b\x1b_Gx\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e\u0090x\u009cf", "abcdef"},
	"string without an end":    {"a\x1b]52;c;\nb", "a\nb"},
	"string that is cancelled": {"a\x1b]52;\x18b\x1bPx\x1ac", "abc"},
	"string and a color":       {"a\x1b]52;x\x1b[31mb\x1b[m", "a\x1b[31mb\x1b[m"},
	"character set":            {"a\x1b(0b\x1b#8c\x1b%@d", "abcd"},
	"lone escapes":             {"a\x1b\x1b\nb\x1b日\x1b", "a\nb日"},
	"line end in a sequence":   {"a\x1b[3\n1mb", "a\n1mb"},
	"control characters":       {"a\a\b\x00\v\f\x0e\x0f\x7f\u0084\u0085b", "ab"},
	"bytes of no UTF-8":        {"a\x9b31m\xffb", "a\ufffd31m\ufffdb"},
	"overlong escape":          {"a\xc0\x9b[31mb", "a\ufffd\ufffd[31mb"},
	"half a character":         {"a\xe6\x97", "a\ufffd"},
}

// TestFilterPassesOnlyColors writes each text whole, and in pieces of each size.
func TestFilterPassesOnlyColors(t *testing.T) {
	ours, theirs := terminaltest.Open(t, 80)
	defer ours.Close()
	for name, tt := range filterCases {
		if got := Filtered(theirs, tt.in); got != tt.want {
			t.Errorf("%s: %q gives %q, want %q", name, tt.in, got, tt.want)
		}
		var b bytes.Buffer
		f := NewFilter(theirs, &b) // one for all sizes: End makes it new
		for size := 1; size < min(len(tt.in), 6); size++ {
			b.Reset()
			for rest := []byte(tt.in); len(rest) > 0; {
				piece := rest[:min(size, len(rest))]
				if n, err := f.Write(piece); n != len(piece) || err != nil {
					t.Fatalf("%s: wrote %d of %d, %v", name, n, len(piece), err)
				}
				rest = rest[len(piece):]
			}
			if got := b.String() + string(f.End()); got != tt.want {
				t.Errorf("%s: in pieces of %d: %q, want %q", name, size, got, tt.want)
			}
		}
	}
}

func TestFilterPassesEverythingToFiles(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, tt := range filterCases {
		if got := Filtered(file, tt.in); got != tt.in {
			t.Errorf("%s: %q became %q", name, tt.in, got)
		}
	}
}

func TestFilterHoldsLittle(t *testing.T) {
	_, theirs := terminaltest.Open(t, 80)
	f := NewFilter(theirs, &bytes.Buffer{})
	for _, begun := range []string{"\x1b[", "\x1b]", "\x1b ", "\x1bP", "\xe6"} {
		_, _ = f.Write([]byte(begun))
		for range 1000 {
			_, _ = f.Write([]byte(strings.Repeat("1", 100)))
		}
		if len(f.params) > maxParams+1 || len(f.half) >= utf8.UTFMax {
			t.Errorf("%q: holds %d and %d bytes", begun, len(f.params), len(f.half))
		}
	}
}

var color = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func FuzzFilter(f *testing.F) {
	for _, tt := range filterCases {
		f.Add(tt.in, 3)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		var b bytes.Buffer
		filter := &Filter{w: &b}
		at = min(max(at, 0), len(s))
		_, _ = filter.Write([]byte(s[:at]))
		_, _ = filter.Write([]byte(s[at:]))
		got := b.String() + string(filter.End())
		rest := color.ReplaceAllString(got, "")
		if !utf8.ValidString(got) || strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t\r", r) }) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
