package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/ongoing"
	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/egress"
)

// The ways in which a run ends. All but the first and the last are errors to the client.
const (
	StatusSuccess    = "success"
	StatusError      = "error"            // the code failed
	StatusTimeout    = "timeout"          // it ran too long
	StatusMemory     = "memory_limit"     // it needed too much memory
	StatusCancelled  = "cancelled"        // the client or the server's end stopped it
	StatusValidation = "validation_error" // the call itself is invalid
	StatusSandbox    = "sandbox_error"    // the host could not run it
	StatusApproval   = "approval_needed"  // it stands still until the user has decided; no error
)

// A Result is the result of a run. Clients do not get empty fields.
type Result struct {
	Status   string   `json:"status"`
	Summary  string   `json:"summary,omitempty"`
	ExitCode *int     `json:"exitCode,omitempty"`
	Stdout   []string `json:"stdout,omitempty"` // lines
	Stderr   []string `json:"stderr,omitempty"` // lines
	Servers  []string `json:"servers,omitempty"`
	Error    string   `json:"error,omitempty"`
	Hint     string   `json:"hint,omitempty"`  // how to fix the error
	Stack    []string `json:"stack,omitempty"` // where the code was when its time was up, outermost first
	// What a failed run had done by then, so that a retry does not repeat it.
	Calls          []gate.CallRecord   `json:"calls,omitempty"`
	CallsLeftOut   int                 `json:"callsLeftOut,omitempty"`
	ReadOnlyCalls  int                 `json:"readOnlyCalls,omitempty"`
	TimeoutSeconds int                 `json:"timeoutSeconds,omitempty"`
	Result         string              `json:"result,omitempty"` // repr of a trailing expression
	Truncated      bool                `json:"truncated,omitempty"`
	Pictures       []artifacts.Picture `json:"pictures,omitempty"`
	Files          []artifacts.File    `json:"files,omitempty"`
	Network        []egress.Use        `json:"network,omitempty"`   // what was reached
	Session        string              `json:"session,omitempty"`   // of a run in one: new, continued or ended
	Notes          []string            `json:"notes,omitempty"`     // what the caller should know besides
	Isolation      string              `json:"isolation,omitempty"` // what the sandbox lacked (oci.Runtime.Isolation)

	// What a dry run would have done; not nil if it was one.
	Plan        []gate.PlannedCall `json:"plan,omitzero"`
	PlanLeftOut int                `json:"planLeftOut,omitempty"` // more such calls

	Approval *ongoing.Approval `json:"approval,omitempty"` // what the run waits for

	folder  string // where the files are on this host
	cause   error
	effects []string // the calls that may have changed something, as lines
	// moreEffects counts those that have no line.
	moreEffects int
	hostNotes   []string // the Notes that apply to every run on this host
}

// HostNotes returns the Notes that apply to every run on this host, in order.
func (r *Result) HostNotes() []string { return r.hostNotes }

// WithoutHostNotes returns a copy of r for a reader who does not need them, or
// has seen them.
func (r *Result) WithoutHostNotes() *Result {
	short := *r
	short.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(n string) bool { return slices.Contains(r.hostNotes, n) })
	return &short
}

// Cause returns the error that prevented a run, or nil if the code itself
// failed or succeeded.
func (r *Result) Cause() error { return r.cause }

// Outcome returns the status, the calls that may have changed something, as lines, and how
// many more there are. Calls has those of failed runs only.
func (r *Result) Outcome() (status string, effects []string, more int) {
	return r.Status, r.effects, r.moreEffects
}

// IsError reports whether the run counts as failed.
func (r *Result) IsError() bool { return r.Status != StatusSuccess && r.Status != StatusApproval }

// fail makes r the result of a call that could not be carried out or completed.
func (r *Result) fail(err error) *Result {
	r.Status, r.Error, r.cause = statusOf(err), err.Error(), err
	r.Hint = doctor.Advice(err)
	return r
}

// approvalNeeded is the result of a run that waits.
func approvalNeeded(a *ongoing.Approval) *Result {
	return &Result{Status: StatusApproval, Approval: a, Summary: a.Summary()}
}

// An OutputMode is a form in which results are written.
type OutputMode string

// The output modes. Compact is plain text, the others are fenced blocks.
const (
	OutputCompact OutputMode = "compact"
	OutputTOON    OutputMode = "toon"
	OutputJSON    OutputMode = "json"
)

// ParseOutputMode reads the name of an output mode.
func ParseOutputMode(s string) (OutputMode, error) {
	switch m := OutputMode(strings.ToLower(strings.TrimSpace(s))); m {
	case OutputCompact, OutputTOON, OutputJSON:
		return m, nil
	}
	return "", fmt.Errorf("output mode %q is none of compact, toon, json", s)
}

// Text writes the result for a reader, in the given mode.
func (r *Result) Text(mode OutputMode) string {
	short := r.withoutRepetition()
	switch mode {
	case OutputTOON:
		return toonOrJSON(short.fields(), short)
	case OutputJSON:
		return short.fencedJSON()
	default:
		return short.compact()
	}
}

// size is about how many bytes of output the result has.
func (r *Result) size() (n int) {
	n = len(r.Result) + len(r.Error)
	for _, lines := range [][]string{r.Stdout, r.Stderr} {
		for _, line := range lines {
			n += len(line) + len("\n")
		}
	}
	return n
}

// withoutRepetition returns a copy of r that says nothing twice: a traceback ends
// with the error itself, and the summary of a failure is its error. The structured
// content, which programs read, has all fields.
func (r *Result) withoutRepetition() *Result {
	short := *r
	if r.IsError() && r.Error != "" {
		short.Summary = ""
	}
	if r.Error != "" && contains(r.Stderr, r.Error) {
		short.Error = ""
	}
	if len(r.Calls) == 0 {
		short.ReadOnlyCalls = 0 // a retry repeats nothing
	}
	return &short
}

// toonOrJSON writes a value as TOON, or as JSON without a space where TOON cannot
// say it or takes more: nested lists of differing things, above all.
func toonOrJSON(fields toon.Object, v any) string {
	var short bytes.Buffer
	enc := json.NewEncoder(&short)
	enc.SetEscapeHTML(false)
	toon, toonErr := toon.Marshal(fields)
	err := enc.Encode(v)
	if toonErr == nil && (err != nil || len(toon) <= short.Len()-len("\n")) {
		return fenced("toon", toon)
	}
	return fenced("json", strings.TrimSuffix(short.String(), "\n"))
}

func (r *Result) fencedJSON() string {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err.Error() // cannot happen: strings and numbers only
	}
	return fenced("json", string(body))
}

// fenced puts body into a code block whose fence is longer than any run of
// backquotes in it (CommonMark, Fenced code blocks).
func fenced(language, body string) string {
	run, longest := 0, 2
	for i := range len(body) {
		if run++; body[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + body + "\n" + fence
}

// compact is the form with the fewest tokens: the code's output, plus only what
// is unusual.
func (r *Result) compact() string {
	var out []string
	if r.Status != StatusSuccess {
		out = append(out, "status: "+r.Status)
		if r.ExitCode != nil && *r.ExitCode != 0 {
			out = append(out, "exit: "+strconv.Itoa(*r.ExitCode))
		}
	}
	if len(r.Stdout) > 0 {
		out = append(out, strings.Join(r.Stdout, "\n"))
	}
	if r.Result != "" {
		out = append(out, r.Result)
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
	out = append(out, r.PlanLines()...)
	out = append(out, r.CallLines()...)
	out = append(out, r.fileLines()...)
	if len(out) == 0 {
		out = append(out, r.Summary)
	}
	for _, n := range r.Notes {
		out = append(out, "note: "+n)
	}
	return strings.Join(out, "\n")
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
var sourcePlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` \([^()]*, line \d+\)`) })

// fields returns the result as an ordered object, made from its JSON form, so
// that every mode has the same fields. What may be long is not decoded again.
func (r *Result) fields() toon.Object {
	short := *r
	short.Stdout, short.Stderr, short.Plan = r.Stdout[:min(len(r.Stdout), 1)], r.Stderr[:min(len(r.Stderr), 1)], r.Plan[:min(len(r.Plan), 1)]
	body, err := json.Marshal(short)
	if err != nil {
		return nil
	}
	var byName map[string]any
	if json.Unmarshal(body, &byName) != nil {
		return nil
	}
	var out toon.Object
	for _, name := range []string{
		"status", "summary", "approval", "exitCode", "stdout", "stderr", "servers", "error", "hint", "stack",
		"plan", "planLeftOut", "calls", "callsLeftOut", "readOnlyCalls", "timeoutSeconds", "result", "truncated", "pictures", "files", "network", "session", "notes", "isolation",
	} {
		v, ok := byName[name]
		switch {
		case !ok:
		case name == "stdout":
			v = r.Stdout
		case name == "stderr":
			v = r.Stderr
		case name == "calls":
			v = r.callRows()
		case name == "plan":
			v = r.planRows()
		case name == "pictures":
			v = r.pictureRows()
		case name == "files":
			v = r.fileRows()
		case name == "network":
			v = r.networkRows()
		}
		if ok {
			out = append(out, toon.Field{Key: name, Value: v})
		}
	}
	return out
}

// summarize fills in the one-line summary.
func (r *Result) summarize() {
	switch {
	case r.Summary != "":
	case !r.IsError() && len(r.Stdout) == 0 && len(r.Stderr) == 0 && r.Result == "":
		r.Summary = "Success (" + r.leftText() + ")"
	case !r.IsError():
		r.Summary = "Success"
	case r.Error != "":
		r.Summary, _, _ = strings.Cut(r.Error, "\n")
	default:
		r.Summary = "Failed: " + r.Status
	}
}
