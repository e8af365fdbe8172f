package timeline

import (
	"fmt"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// A View is a timeline in parts, for what is not a terminal. All of it is plain text, without control
// characters and what else a screen would obey, and as long as the record has it.
type View struct {
	Facts     []Fact
	Code      []CodeLine
	CodeExact string  // the code as it was, "" if it is not all there or not plain text
	CodeNote  string  // what of the code is not as it was, or why it is not there
	Elsewhere []*Call // whose lines are not among those of Code
	Beside    string  // the numbers of these
	More      int     // moments that are left out, at the end
	Moments   []Moment
	Blocks    []Block        // what the code printed, and why it failed
	Files     []*record.File // that were left, unless values are hidden
	Notes     []string
	Hidden    bool // values are left out
}

// A Fact is one about the whole run, such as what it cost.
type Fact struct{ Name, What string }

// A CodeLine is a line of the code.
type CodeLine struct {
	Number int // 0 of one that stands behind a gap, and of the gap itself
	Text   string
	Calls  []*Call // that it made
	Margin string  // their numbers, such as #1-3*, where * may have changed something
}

// A Moment is something that happened.
type Moment struct {
	After string // since the run began
	Call  *Call  // nil if it is told of in Text alone
	Text  string // of a call how it ended
	Below []string
}

// A Block is text of several lines.
type Block struct {
	Title, Note string
	Lines       []string // none if it was not kept; Note says why
}

// maxMoments bounds the Moments: a run can make thousands of calls.
const maxMoments = 500

// View returns the timeline in parts.
func (t *Timeline) View(o Options) (v View) {
	o.Whole = true
	p := &printer{Timeline: t, o: o, width: fileWidth}
	v.Hidden = t.hides(&o)
	p.facts()
	p.output()
	v.Facts, v.Blocks, v.Notes = p.items, p.blocks, p.notes("toolcell runs show "+t.Run.ID+" --json")
	if t.Start != nil && t.Start.Code.Size > 0 {
		v.Code, v.Elsewhere, v.CodeNote = p.codeLines()
		if s := p.shownText(&p.o, p.start, "code", &p.Start.Code); !s.none && s.note == "" && console.PlainText(s.value) == s.value {
			v.CodeExact = s.value
		}
	}
	for _, e := range t.others {
		if f, ok := e.Body.(*record.File); ok && f.Use == "left" && !v.Hidden {
			v.Files = append(v.Files, f)
		}
	}
	v.Beside = margin(v.Elsewhere)
	all, now := p.moments(), time.Now()
	v.More = max(0, len(all)-maxMoments)
	for _, m := range all[:len(all)-v.More] {
		shown := Moment{After: fmt.Sprintf("+%.3fs", m.at.Sub(t.Run.Start).Seconds()), Call: m.call}
		if m.call == nil {
			shown.Text = console.Plain(m.line)
		} else {
			shown.Text, shown.Below = m.call.ended()+m.call.took(now), p.below(m.call, "")
		}
		v.Moments = append(v.Moments, shown)
	}
	return v
}
