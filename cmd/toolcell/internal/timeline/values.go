package timeline

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// Options say what of a timeline is shown.
type Options struct {
	// Hide reports whether a server is private. Values of runs that could use one, or one that was private
	// then, are left out. nil shows all.
	Hide    func(server string) bool
	HideAll bool   // no values are shown, whatever the run could use
	ToShow  string // what to type for them, unless it is --values
	Whole   bool   // values are not shortened

	// PolicyFile is the user's policy and Policy its SHA-256, to say whether it is that of the run.
	PolicyFile, Policy string
}

// hides reports whether the values of the run are left out, since it could use a private server: code
// has values itself, and carries them from one server to another.
func (t *Timeline) hides(o *Options) bool {
	if o.Hide == nil || o.HideAll {
		return o.HideAll
	}
	for server := range t.servers {
		if o.Hide(server) {
			return true
		}
	}
	return t.private
}

// A shown is what is shown of a Text.
type shown struct {
	value string
	gap   string // what stands in place of bytes that are left out; "" if none are
	tail  string // what follows the gap
	note  string // what is not as it was, or why there is no value
	none  bool   // there is no value
}

// full returns the value as text of several lines.
func (s shown) full() string {
	if s.gap == "" {
		return s.value
	}
	return s.value + "\n" + s.gap + "\n" + s.tail
}

// shownText returns what is shown of a Text of an entry, and nothing if it was empty.
func (t *Timeline) shownText(o *Options, e *history.Entry, field string, of *record.Text) (s shown) {
	if e == nil || of == nil || of.Size == 0 {
		return shown{none: true}
	}
	size := text.Size(of.Size)
	v := e.Values[field]
	switch {
	case of.Kept == 0:
		return shown{note: size + ", not kept", none: true}
	case v == nil:
		return shown{note: size + ", forgotten or removed", none: true}
	case t.hides(o):
		return shown{note: size + ", not shown: " + cmp.Or(o.ToShow, "--values"), none: true}
	}
	s.value = v.Value.Value
	var notes []string
	if of.Cut > 0 {
		left := text.Size(of.Cut)
		s.gap, s.tail = "… "+left+" left out …", v.Tail
		notes = append(notes, left+" of "+size+" left out")
	}
	if len(of.Hidden) > 0 {
		notes = append(notes, "blacked out: "+strings.Join(of.Hidden, ", "))
	}
	if v.Wrong {
		notes = append(notes, "this is NOT what was recorded")
	}
	s.note = strings.Join(notes, "; ")
	return s
}

// HasPolicy reports whether the user had a policy.
func (t *Timeline) HasPolicy() bool { return t.Start != nil && t.Start.Policy != "" }

// arguments returns what is shown of the arguments of a call.
func (t *Timeline) arguments(o *Options, c *Call) shown {
	e, of := c.arguments()
	return t.shownText(o, e, "arguments", of)
}

// ArgumentsOf returns the arguments of a call on one line of at most n columns, or why they are not
// there.
func (t *Timeline) ArgumentsOf(c *Call, o Options, n int) string {
	s := t.arguments(&o, c)
	if s.none && s.note != "" {
		return "(" + s.note + ")"
	}
	return console.OneLine(s.full(), n)
}

// A Value is one of an entry in JSON.
type Value struct {
	Value    *string `json:"value,omitempty"`
	Tail     string  `json:"tail,omitempty"`     // its end, if bytes between were left out
	Wrong    bool    `json:"wrong,omitempty"`    // it is not what was recorded
	NotShown bool    `json:"notShown,omitempty"` // of a private server
}

func (t *Timeline) value(o *Options, v *history.Value) Value {
	if t.hides(o) {
		return Value{NotShown: true}
	}
	return Value{Value: &v.Value.Value, Tail: v.Tail, Wrong: v.Wrong}
}

// ArgumentsValue returns the arguments of a call, nil if they are not kept.
func (t *Timeline) ArgumentsValue(c *Call, o Options) *Value {
	e, _ := c.arguments()
	return t.valueOf(&o, e, "arguments")
}

// Shown returns the text that the user was shown, nil if it is not kept.
func (t *Timeline) Shown(q *Question, o Options) *Value { return t.valueOf(&o, q.entry, "shown") }

// BecauseValue returns what the user says to what is denied, nil if it is not kept.
func (t *Timeline) BecauseValue(q *Question, o Options) *Value {
	return t.valueOf(&o, q.answered, "because")
}

func (t *Timeline) valueOf(o *Options, e *history.Entry, field string) *Value {
	if e == nil || e.Values[field] == nil {
		return nil
	}
	v := t.value(o, e.Values[field])
	return &v
}

// JSON returns an entry as an object: its line, with the file that it is in, and its values.
func (t *Timeline) JSON(o Options, e *history.Entry) (json.RawMessage, error) {
	values := map[string]Value{}
	for field, v := range e.Values {
		values[field] = t.value(&o, v)
	}
	more, err := json.Marshal(struct {
		File   string           `json:"file"`
		Values map[string]Value `json:"values,omitempty"`
	}{e.File, values})
	if err != nil {
		return nil, err
	}
	line := strings.TrimSuffix(strings.TrimSpace(string(e.Raw)), "}")
	return json.RawMessage(line + "," + string(more[1:])), nil
}

// A Summary is a run with all that its entries say of the whole of it.
type Summary struct {
	history.Run
	Version   string           `json:"version,omitempty"`
	PID       int              `json:"pid,omitempty"`
	Grants    record.Grants    `json:"grants"`
	Policy    string           `json:"policySHA256,omitempty"`
	Timeout   int              `json:"timeoutSeconds,omitempty"`
	Ready     bool             `json:"ready"` // code ran
	Image     *record.Image    `json:"image,omitempty"`
	Packages  []record.Package `json:"packages,omitempty"`
	Tools     string           `json:"toolsSHA256,omitempty"`
	Folder    string           `json:"folder,omitempty"`
	Continued bool             `json:"continued,omitempty"`
	ExitCode  *int             `json:"exitCode,omitempty"`
	Effects   []record.Done    `json:"effects,omitempty"`
	Files     []record.File    `json:"files,omitempty"`
	Cost      *record.RunCost  `json:"cost,omitempty"`
	Uncertain []int            `json:"unknownCalls,omitempty"` // numbers: they may have taken effect
}

// Summary merges what the entries say.
func (t *Timeline) Summary() Summary {
	s := Summary{Run: t.Run, Cost: t.Cost}
	if b := t.Start; b != nil {
		s.Version, s.PID, s.Grants, s.Policy, s.Timeout = b.Version, b.PID, b.Grants, b.Policy, b.Timeout
	}
	if r := t.Ready; r != nil {
		s.Ready, s.Image, s.Packages, s.Tools, s.Folder, s.Continued = true, &r.Image, r.Packages, r.Tools, r.Folder, r.Continued
	}
	if e := t.End; e != nil {
		s.ExitCode, s.Effects, s.Files = e.ExitCode, e.Effects, e.Files
	}
	for _, c := range t.Calls {
		if c.RecordedOutcome() == string(record.Unknown) {
			s.Uncertain = append(s.Uncertain, c.Number)
		}
	}
	return s
}
