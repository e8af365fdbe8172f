package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A docBlock is a fenced block of a document, and what a comment in front of
// it says about how the test is to take it:
//
//	<!-- not run: WHY -->     it cannot be run here
//	<!-- exit: 0, 3 -->       its commands end with these codes; "0 or 1" allows both
//	<!-- error: TEXT -->      Python that fails with TEXT in its result
//	<!-- prints -->           what the block before it prints, … standing for anything
//	<!-- session: NAME -->    Python that runs in a session
//	<!-- image: REF -->       Python that runs in another image
//	<!-- checkout -->         it is typed in the source's folder
//	<!-- file: PATH -->       the test keeps it as this file, for later blocks
//	<!-- needs: WHAT -->      a test of its own follows it: TestGuideWithReferenceServers
type docBlock struct {
	line       int // of the opening fence
	lang, text string
	mark, arg  string
}

// docLangs says which languages there are, and whether such a block can be
// marked as not run: plain text is not checked anyway.
var docLangs = []string{"sh", "console", "python", "json", "toml", "yaml", "text"}

var docMarks = []string{"not run", "exit", "error", "prints", "session", "image", "checkout", "file", "needs"}

var docComment = regexp.MustCompile(`^<!-- ([a-z ]+?)(?:: (.+))? -->$`)

// docBlocks reads the blocks of a Markdown document. It refuses what would
// escape the test: code without a fence, and fences of unknown kinds.
func docBlocks(text string) (blocks []docBlock, err error) {
	lines := strings.Split(text, "\n")
	var open *docBlock
	var body []string
	for i, line := range lines {
		switch {
		case open != nil && strings.TrimRight(line, " ") == "```":
			open.text = strings.Join(body, "\n")
			blocks, open, body = append(blocks, *open), nil, nil
		case open != nil:
			body = append(body, line)
		case strings.HasPrefix(line, "```"):
			open = &docBlock{line: i + 1, lang: strings.TrimPrefix(line, "```")}
			if !slices.Contains(docLangs, open.lang) {
				return nil, fmt.Errorf("line %d: a block of %q: there are %s", i+1, open.lang, strings.Join(docLangs, ", "))
			}
			if err := open.readMark(lines[:i]); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		case strings.Contains(line, "```"):
			return nil, fmt.Errorf("line %d: a fence does not begin its line", i+1)
		case strings.HasPrefix(line, "    ") && i > 0 && strings.TrimSpace(lines[i-1]) == "" && strings.TrimSpace(line) != "":
			return nil, fmt.Errorf("line %d: indented code: put it into a fence", i+1)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block has no end", open.line)
	}
	return blocks, nil
}

// readMark reads the comment right above a block, if one is there.
func (b *docBlock) readMark(above []string) error {
	if len(above) == 0 || !strings.HasPrefix(above[len(above)-1], "<!--") {
		return nil
	}
	m := docComment.FindStringSubmatch(above[len(above)-1])
	if m == nil || !slices.Contains(docMarks, m[1]) {
		return fmt.Errorf("%s is no mark: there are %s", above[len(above)-1], strings.Join(docMarks, ", "))
	}
	if b.mark, b.arg = m[1], m[2]; b.arg == "" && b.mark != "prints" && b.mark != "checkout" {
		return fmt.Errorf("the mark %q says no more: a reason, or a value", b.mark)
	}
	return nil
}

// A docCommand is a line of a console block, and what it prints.
type docCommand struct{ line, prints string }

// commands reads a console block: "$ " before what is typed.
func (b docBlock) commands() (all []docCommand) {
	for line := range strings.Lines(b.text + "\n") {
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, docCommand{line: strings.TrimSuffix(typed, "\n")})
		} else if len(all) > 0 {
			all[len(all)-1].prints += line
		}
	}
	return all
}

// docMatches reports whether text is what a document shows, in which … stands
// for anything, and white space at the ends does not count.
func docMatches(shown, text string) bool {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSpace(shown), "…") {
		parts = append(parts, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, `.*`) + `$`).MatchString(strings.TrimSpace(text))
}

// documents are those for users and contributors, by their path from the
// source's folder.
func documents(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat("../../../README.md"); err != nil {
		t.Skip("needs the source")
	}
	names := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	inDocs, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(inDocs) == 0 {
		t.Fatalf("docs/*.md: %d, %v", len(inDocs), err)
	}
	for _, name := range inDocs {
		names = append(names, "docs/"+filepath.Base(name))
	}
	return names
}

func TestDocumentBlocks(t *testing.T) {
	for name, tt := range map[string]struct {
		doc  string
		want []docBlock
		err  string
	}{
		"plain":         {"x\n```sh\na\nb\n```\n", []docBlock{{line: 2, lang: "sh", text: "a\nb"}}, ""},
		"marked":        {"<!-- not run: needs a browser -->\n```sh\na\n```", []docBlock{{2, "sh", "a", "not run", "needs a browser"}}, ""},
		"without value": {"<!-- prints -->\n```text\na\n```", []docBlock{{2, "text", "a", "prints", ""}}, ""},
		"no reason":     {"<!-- not run -->\n```sh\na\n```", nil, "a reason"},
		"unknown mark":  {"<!-- skip: x -->\n```sh\na\n```", nil, "no mark"},
		"no language":   {"```\na\n```", nil, `a block of ""`},
		"indented":      {"text\n\n    toolcell doctor\n", nil, "indented code"},
		"in a list":     {"- text\n\n  ```sh\n  a\n  ```", nil, "does not begin its line"},
		"endless":       {"```sh\na\n", nil, "no end"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := docBlocks(tt.doc)
			if !slices.Equal(got, tt.want) || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestDocumentOutputMatches(t *testing.T) {
	for _, tt := range []struct {
		shown, text string
		want        bool
	}{
		{"42", "42\n", true},
		{"42", "43\n", false},
		{"a … ms", "a 12 ms", true},
		{"first\n…\nlast", "first\nx\ny\nlast\n", true},
		{"first\n…", "second\n", false},
		{"a.c", "abc", false},
	} {
		if got := docMatches(tt.shown, tt.text); got != tt.want {
			t.Errorf("%q shows %q: %v", tt.shown, tt.text, got)
		}
	}
}
