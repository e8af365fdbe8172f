package run

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/text"
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
	StatusRecord     = "record_error"     // it could not be recorded, and the user wants nothing to run then
	StatusApproval   = "approval_needed"  // it is paused until the user has decided; no error
)

// A Result is the result of a run. Clients do not get empty fields, and read the others in this
// order.
type Result struct {
	Status   string    `json:"status"`
	Summary  string    `json:"summary,omitempty"`
	Approval *Approval `json:"approval,omitempty"` // what the run waits for
	ExitCode *int      `json:"exitCode,omitempty"`
	Stdout   []string  `json:"stdout,omitempty"` // lines
	Stderr   []string  `json:"stderr,omitempty"` // lines
	Servers  []string  `json:"servers,omitempty"`
	// Where the servers that it used run, by name, if not where they do by default: mcpproxy.OnHost or
	// mcpproxy.InSandbox.
	Where map[string]string `json:"where,omitempty"`
	Error string            `json:"error,omitempty"`
	Hint  string            `json:"hint,omitempty"`  // how to fix the error
	Stack []string          `json:"stack,omitempty"` // where the code was when its time was up, outermost first
	// What a dry run would have done; not nil if it was one.
	Plan        []gate.PlannedCall `json:"plan,omitzero"`
	PlanLeftOut int                `json:"planLeftOut,omitempty"` // more such calls
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
	Notes          []string            `json:"notes,omitempty"`     // more that the caller should know
	Isolation      string              `json:"isolation,omitempty"` // what the sandbox lacked (oci.Runtime.Isolation)
	Run            string              `json:"run,omitempty"`       // its ID on record

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

// With returns a copy of r for a client, in which notes about the host, and where servers run, are there only
// if they are new: they are the same in every result. If the run has failed, where servers run may be why.
// isNew reports whether the client has not had a text.
func (r *Result) With(isNew func(text string) bool) *Result {
	short := *r
	short.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(n string) bool { return slices.Contains(r.hostNotes, n) && !isNew("host: "+n) })
	if !isNew("isolation: " + r.Isolation) {
		short.Isolation = ""
	}
	short.Where = maps.Clone(r.Where)
	maps.DeleteFunc(short.Where, func(server, where string) bool { return !isNew("where: "+server+": "+where) && !r.IsError() })
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

// Refuse returns the result of a call that begins no run, and of one whose run has ended.
func Refuse(err error) *Result {
	if _, ended := errors.AsType[*EndedError](err); ended {
		return failed(StatusCancelled, err)
	}
	return failed(StatusValidation, err)
}

// panicked returns the result of a run that an internal error has ended.
func panicked(err error) *Result { return failed(StatusSandbox, err) }

// failed returns a result that has nothing but an error.
func failed(status string, err error) *Result {
	r := (&Result{}).fail(withStatus(status, err))
	r.Summarize()
	return r
}

// fail makes r the result of a call that could not be carried out or completed.
func (r *Result) fail(err error) *Result {
	r.Status, r.Error, r.cause = statusOf(err), err.Error(), err
	r.Hint = doctor.Advice(err)
	return r
}

// Summarize fills in the one-line summary.
func (r *Result) Summarize() {
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

// leftText summarizes the files of a run that printed nothing.
func (r *Result) leftText() string {
	var left []string
	if n := len(r.Pictures); n > 0 {
		left = append(left, text.Plural(n, "picture"))
	}
	if n := len(r.Files); n > 0 {
		left = append(left, text.Plural(n, "file"))
	}
	if len(left) == 0 {
		return "no output"
	}
	return strings.Join(left, ", ")
}

// A LocalFile is a file or a picture on this host.
type LocalFile struct {
	Path string
	Text string // a short description
}

// LocalFiles lists where on this host the run's files are. A picture that the
// result shows scaled down is there in its original size.
func (r *Result) LocalFiles() []LocalFile {
	var out []LocalFile
	listed := map[string]bool{}
	for _, f := range r.Files {
		listed[f.Name] = true
		out = append(out, LocalFile{filepath.Join(r.folder, f.Name), f.Type + ", " + text.Size(f.Size)})
	}
	for _, p := range r.Pictures {
		if p.URI != "" && !listed[p.Name] {
			out = append(out, LocalFile{filepath.Join(r.folder, p.Name), fmt.Sprintf("%s, %d×%d", p.Type, p.Width, p.Height)})
		}
	}
	return out
}

// Size is about how many bytes of output the result has.
func (r *Result) Size() (n int) {
	n = len(r.Result) + len(r.Error)
	for _, lines := range [][]string{r.Stdout, r.Stderr} {
		for _, line := range lines {
			n += len(line) + len("\n")
		}
	}
	return n
}
