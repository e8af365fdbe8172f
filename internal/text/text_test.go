package text

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	reference := regexp.MustCompile(`\$\{([a-z]*)(:-[a-z]+)?\}`)
	value := func(match []string) (string, error) {
		switch match[1] {
		case "bad":
			return "", errors.New("no such variable")
		case "long":
			return strings.Repeat("x", maxExpanded/2), nil
		}
		return strings.ToUpper(match[1]) + match[2], nil
	}
	for s, want := range map[string]string{
		"":                "",
		"none of $x {y}":  "none of $x {y}",
		"${}":             "",
		"${a}${b}":        "AB",
		"<${a:-x}> ${b}.": "<A:-x> B.",
		"ä${a}ö":          "äAö",
		"${a${b}}":        "${aB}",
	} {
		if got, err := Expand(s, reference, value); got != want || err != nil {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{"x ${a} ${bad}": "no such variable", "${long}${long}${a}": "too long"} {
		if got, err := Expand(s, reference, value); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
}

func TestUntrustedTextIsMadeFitForALine(t *testing.T) {
	for _, c := range []struct{ in, printable, line, bound string }{
		{"plain", "plain", "plain", "plain"},
		{" a\tb\n c ", "a b c", "a b c", " a\tb\n c "},
		{"a\x1b[31m\u009bb\x00", "a[31mb", "a[31mb", "a\x1b[31m\u009bb\x00"},
		{"a\u202eb", "a\u202eb", "ab", "a\u202eb"},
		{"a\xffb", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"0123456789abcdefghij", "0123456789abcdef", "0123456789abcdef [… 4 bytes left out …]", "0123456789abcdef [… 4 bytes left out …]"},
		{"0123456789abcdé", "0123456789abcdé", "0123456789abcdé", "0123456789abcdé"},
		{"0123456789abcdeé", "0123456789abcde", "0123456789abcde [… 1 bytes left out …]", "0123456789abcde [… 1 bytes left out …]"},
	} {
		if got := Printable(c.in, 16); got != c.printable {
			t.Errorf("Printable(%q) = %q", c.in, got)
		}
		if got := OneLine(c.in, 16); got != c.line {
			t.Errorf("OneLine(%q) = %q", c.in, got)
		}
		if got := Bound(c.in, 16); got != c.bound {
			t.Errorf("Bound(%q) = %q", c.in, got)
		}
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1 MiB", 5 << 29: "2.5 GiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1_020_003: "1,020,003"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
