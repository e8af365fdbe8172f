package pins

import (
	"encoding/json/jsontext"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// A Difference is how one part of a definition has changed.
type Difference struct {
	Part string `json:"part"` // as MCP calls it
	// Diff has a line for each line of the part. Pinned lines begin with a minus, lines that
	// the server sends now with a plus, and lines of both with a space. It has no hidden
	// characters.
	Diff string `json:"diff"`
}

const (
	maxDiffLines = 80
	maxDiffLine  = 500 // bytes
	longLine     = 100 // bytes, from which on sentences are lines of their own
)

// Differences returns the changes in the definition of a tool, part by part. An added tool
// has changed in all parts, an unchanged tool in none.
func (t *Tool) Differences() (all []Difference) {
	if t.Seen == nil {
		return nil
	}
	before, after := Shown{}, t.Seen.Shown
	if t.Pinned != nil {
		before = t.Pinned.Shown
	}
	if before == nil || after == nil {
		return []Difference{{"definition", "  it is too long to be kept, but for its digest\n"}}
	}
	for _, name := range members[1:] {
		if was, is := before[name], after[name]; was != is {
			if diff := LineDiff(readable(was), readable(is)); diff != "" {
				all = append(all, Difference{name, diff})
			}
		}
	}
	if len(all) == 0 {
		all = []Difference{{"definition", "  the change is beyond what is kept of it\n"}}
	}
	return all
}

// readable splits a part into lines.
func readable(part string) string {
	if part == "" {
		return ""
	}
	if strings.HasPrefix(part, "{") {
		if set := indented(part); set != "" {
			return set
		}
	}
	var b strings.Builder
	for line := range strings.Lines(text.Visible(part)) {
		if len(line) > longLine {
			line = strings.ReplaceAll(line, ". ", ".\n")
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// maxIndented bounds the nesting of a part that is indented: each line begins with its depth.
const maxIndented = 100

// indented indents JSON, with its members in order. It returns "" if the part is not JSON, or
// nests too deep for that.
func indented(part string) string {
	if !rawjson.NestsAtMost([]byte(part), maxIndented) {
		return ""
	}
	v := jsontext.Value(part)
	if v.Format(jsontext.ReorderRawObjects(true), jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return "" // it was cut
	}
	return text.Visible(string(v)) + "\n"
}

// LineDiff returns the lines that differ, and those around them, as Difference.Diff has them: at most
// 80, shortened to 500 bytes each. The texts are lines without hidden characters.
func LineDiff(before, after string) string {
	var b strings.Builder
	n := 0
	_, unified, _ := strings.Cut(udiff.Unified("", "", before, after), "\n@@") // without names of files
	for line := range strings.Lines("@@" + unified) {
		if strings.HasPrefix(line, "@@") {
			continue
		}
		if n++; n <= maxDiffLines {
			b.WriteString(text.Bound(strings.TrimSuffix(line, "\n"), maxDiffLine) + "\n")
		}
	}
	if n > maxDiffLines {
		fmt.Fprintf(&b, "  [… %s left out]\n", text.Plural(n-maxDiffLines, "more line"))
	}
	return b.String()
}

// maxHiddenLines bounds the lines that HiddenLines returns.
const maxHiddenLines = 5

// HiddenLines returns lines of a definition that have hidden characters, which are
// written as escapes.
func (v *Version) HiddenLines() (lines []string) {
	if v.Shown == nil || len(v.Hidden) == 0 {
		return nil
	}
	for _, name := range members[1:] {
		for line := range strings.Lines(readable(v.Shown[name])) {
			if escape().MatchString(line) && len(lines) < maxHiddenLines {
				lines = append(lines, text.Bound(strings.TrimSpace(line), maxDiffLine))
			}
		}
	}
	return lines
}

// escape finds what Visible writes.
var escape = text.Pattern(`\\(u[0-9a-f]{4}|U[0-9a-f]{8})`)
