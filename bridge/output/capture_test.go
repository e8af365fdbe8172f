package output

import (
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
		if string(head) != whole[:20] || string(tail) != whole[len(whole)-20:] || omitted != int64(len(whole)-40) {
			t.Errorf("chunks of %d: %q … %q, %d omitted", chunk, head, tail, omitted)
		}
	}
}

func TestCaptureLines(t *testing.T) {
	for name, tt := range map[string]struct {
		limit     int
		in        string
		want      string
		truncated bool
	}{
		"nothing":               {100, "", "", false},
		"blank ends, kept core": {100, "\n \na\n  \nb\n\n", "a|  |b", false},
		"carriage returns":      {100, "a\r\nb\r\n", "a|b", false},
		"leading space is kept": {100, "  a\n", "  a", false},
		"exactly the limit":     {4, "abcd", "abcd", false},
		"no half characters":    {6, "aéééééé", "aé|[… 7 bytes left out here; the stream had 13 bytes …]|é", true},
	} {
		c := newCapture(tt.limit)
		if _, err := c.Write([]byte(tt.in)); err != nil {
			t.Fatal(err)
		}
		lines, truncated := c.Lines()
		if got := strings.Join(lines, "|"); got != tt.want || truncated != tt.truncated {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, truncated, tt.want, tt.truncated)
		}
	}
}

// TestCaptureBoundsLines: of a great many lines, a result has the first and the last.
func TestCaptureBoundsLines(t *testing.T) {
	for _, lines := range []int{maxLines, maxLines + 1, 3 * maxLines, 10 * maxLines} {
		c := newCapture(1 << 20)
		text := "first\n" + strings.Repeat("\n", lines-2) + "last"
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got, cut := c.Lines()
		if got[0] != "first" || got[len(got)-1] != "last" || cut != (lines > maxLines+1) || len(got) > maxLines+1 {
			t.Errorf("of %d lines there are %d, cut: %v", lines, len(got), cut)
		}
	}
}
