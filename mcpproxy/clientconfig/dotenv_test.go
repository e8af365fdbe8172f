package clientconfig

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestDotenv(t *testing.T) {
	got, err := parseDotenv([]byte("\r\n# c\r\nA=1\r\nexport B = two words # note\nC='$x \\n'\nD=\"a\\nb\\\"\\$ \\q\"\nE=\nF=#not a comment\nG=\"x\ny\" # z\nH.x-y=1\n \t# c\n \n\t export I=1\n"))
	want := map[string]string{"A": "1", "B": "two words", "C": `$x \n`, "D": "a\nb\"$ \\q", "E": "", "F": "#not a comment", "G": "x\ny", "H.x-y": "1", "I": "1"}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for text, want := range map[string]string{
		"A=1\nnonsense\n":                "line 2 is not NAME=value",
		"=x":                             "line 1 is not NAME=value",
		"A B=x":                          "line 1 is not NAME=value",
		"A=\"x\ny":                       "line 1: a quotation mark is not closed",
		"A=\x00":                         "NUL",
		strings.Repeat("A=1\n", 5) + "B": "line 6",
		"A=\"x\ny\nz\"\nB":               "line 4 is not NAME=value",
		"A=1\nB='" + strings.Repeat("\n", 1001) + "'": "line 2: a value of more than 1000 lines",
	} {
		_, err := parseDotenv([]byte(text))
		wantError(t, err, want)
	}
}

func TestDotenvKeepsDollarSigns(t *testing.T) {
	got, err := parseDotenv([]byte("PASS=secret\nA=x$PASS\nB=\"x${PASS}\"\nC=pa$$word\n"))
	want := map[string]string{"PASS": "secret", "A": "x$PASS", "B": "x${PASS}", "C": "pa$$word"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestDotenvErrorsDoNotQuoteTheFile(t *testing.T) {
	for _, text := range []string{"A=1\nhunter2\nB=hunter2\n", "A=\"hunter2\n", "A B=hunter2\n", "A=hunter2\x00"} {
		_, err := parseDotenv([]byte(text))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want one without the file's text", text, err)
		}
	}
}

// wantError checks that there is an error whose text has this part. (mcptest imports
// this package.)
func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v does not contain %q", err, part)
	}
}
