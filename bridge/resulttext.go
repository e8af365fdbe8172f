package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/internal/text"
)

// An OutputMode is a form in which results are written.
type OutputMode string

// The output modes. Compact is plain text, the others are fenced blocks.
const (
	OutputCompact OutputMode = "compact"
	OutputTOON    OutputMode = "toon"
	OutputJSON    OutputMode = "json"
)

// A resultText writes a result for its readers.
type resultText struct{ *run.Result }

// Text writes a result for a reader, in the given mode.
func Text(r *run.Result, mode OutputMode) string {
	short := resultText{r}.withoutRepetition()
	switch mode {
	case OutputTOON:
		return toonOrJSON(short.withPlanAsTexts(), short.Result)
	case OutputJSON:
		return short.fencedJSON()
	default:
		return short.compact()
	}
}

// withoutRepetition returns a copy of r that says nothing twice: a traceback ends
// with the error itself, and the summary of a failure is its error. The structured
// content, which programs read, has all fields.
func (r resultText) withoutRepetition() resultText {
	short := *r.Result
	if r.IsError() && r.Error != "" {
		short.Summary = ""
	}
	if r.Error != "" && contains(r.Stderr, r.Error) {
		short.Error = ""
	}
	if len(r.Calls) == 0 {
		short.ReadOnlyCalls = 0 // a retry repeats nothing
	}
	return resultText{&short}
}

// toonOrJSON writes a value as TOON, or another one as JSON without a space where TOON cannot
// say it or takes more: nested lists of differing things, above all.
func toonOrJSON(v, asJSON any) string {
	var short bytes.Buffer
	enc := json.NewEncoder(&short)
	enc.SetEscapeHTML(false)
	err := enc.Encode(asJSON)
	if body, toonErr := json.Marshal(v); toonErr == nil {
		toon, toonErr := toon.Marshal(body)
		if toonErr == nil && (err != nil || len(toon) <= short.Len()-len("\n")) {
			return fenced("toon", toon)
		}
	}
	return fenced("json", strings.TrimSuffix(short.String(), "\n"))
}

func (r resultText) fencedJSON() string {
	body, err := json.MarshalIndent(r.Result, "", "  ")
	if err != nil {
		return err.Error() // cannot happen: strings and numbers only
	}
	return fenced("json", string(body))
}

// fenced puts body into a code block whose fence is longer than any row of
// backquotes in it (CommonMark, Fenced code blocks).
func fenced(language, body string) string {
	row, longest := 0, 2
	for i := range len(body) {
		if row++; body[i] != '`' {
			row = 0
		}
		longest = max(longest, row)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + body + "\n" + fence
}

// compact is the form with the fewest tokens: the code's output, plus only what
// is unusual.
func (r resultText) compact() string {
	var out []string
	if r.Status != run.StatusSuccess {
		out = append(out, "status: "+r.Status)
		if r.ExitCode != nil && *r.ExitCode != 0 {
			out = append(out, "exit: "+strconv.Itoa(*r.ExitCode))
		}
	}
	if len(r.Stdout) > 0 {
		out = append(out, strings.Join(r.Stdout, "\n"))
	}
	if r.Result.Result != "" {
		out = append(out, r.Result.Result)
	}
	if len(r.Stderr) > 0 {
		out = append(out, "stderr:", strings.Join(r.Stderr, "\n"))
	}
	if r.Error != "" {
		out = append(out, "error: "+r.Error)
	}
	if len(r.Stack) > 0 {
		out = append(out, "it was at:\n  "+strings.Join(r.Stack, "\n  "))
	}
	if r.Hint != "" {
		out = append(out, "hint: "+r.Hint)
	}
	if r.Approval != nil {
		out = append(out, r.Summary)
		out = append(out, r.Approval.Lines()...)
	}
	out = append(out, PlanLines(r.Result)...)
	out = append(out, CallLines(r.Result)...)
	out = append(out, r.fileLines()...)
	if len(out) == 0 {
		out = append(out, r.Summary)
	}
	if where := WhereLine(r.Result); where != "" {
		out = append(out, where)
	}
	for _, n := range r.Notes {
		out = append(out, "note: "+n)
	}
	return strings.Join(out, "\n")
}

// WhereLine says which servers do not run where they do by default, in one line; it is empty if all do.
func WhereLine(r *run.Result) string {
	var said []string
	for _, server := range slices.Sorted(maps.Keys(r.Where)) {
		said = append(said, fmt.Sprintf("%s (%s)", text.Printable(server, 200), r.Where[server]))
	}
	if len(said) == 0 {
		return ""
	}
	return "servers: " + strings.Join(said, ", ")
}

// contains reports whether the end of lines says the first line of message.
func contains(lines []string, message string) bool {
	first, _, _ := strings.Cut(message, "\n")
	first = sourcePlace().ReplaceAllString(first, "")
	for i := len(lines) - 1; i >= 0 && i >= len(lines)-50; i-- {
		if strings.Contains(lines[i], first) {
			return true
		}
	}
	return false
}

// sourcePlace finds what Python adds to the text of a SyntaxError, but not to its
// traceback.
var sourcePlace = text.Pattern(` \([^()]*, line \d+\)`)

// withPlanAsTexts returns the result with the arguments of planned calls as texts, so that the
// calls are a table, whatever their arguments.
func (r resultText) withPlanAsTexts() *run.Result {
	short := *r.Result
	short.Plan = slices.Clone(r.Plan)
	for i, c := range short.Plan {
		short.Plan[i].Arguments, _ = json.Marshal(string(c.Arguments)) // texts always encode
	}
	return &short
}

// maxListedFiles bounds the files listed in a text; the structured content has
// all of them.
const maxListedFiles = 20

// fileLines lists the files for a reader.
func (r resultText) fileLines() []string {
	var out []string
	for _, f := range r.Files[:min(len(r.Files), maxListedFiles)] {
		out = append(out, fmt.Sprintf("file: %s (%s, %s) %s", f.Name, f.Type, text.Size(f.Size), f.URI))
	}
	if more := len(r.Files) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %s more, beside the last one", text.Plural(more, "file")))
	}
	return out
}

// contents are the content blocks for a client: the text, then the pictures.
// Text never contains a picture's bytes.
func (r resultText) contents(mode OutputMode) []mcp.Content {
	out := []mcp.Content{&mcp.TextContent{Text: Text(r.Result, mode)}}
	for _, p := range r.Pictures {
		out = append(out, &mcp.ImageContent{Data: p.Data, MIMEType: p.Type})
	}
	return out
}
