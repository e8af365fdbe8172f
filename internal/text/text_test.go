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
