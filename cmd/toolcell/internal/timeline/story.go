package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// A moment is a line of the story, with what stands below it.
type moment struct {
	at   time.Time
	call *Call
	line string // unless it is a call
}

// widestName bounds the column of the names of calls.
const widestName = 48

// moments returns what happened, in the order of time.
func (p *printer) moments() (all []moment) {
	for _, c := range p.Calls {
		all = append(all, moment{at: c.At, call: c})
	}
	for _, e := range p.others {
		all = append(all, moment{at: e.Time, line: other(e)})
	}
	for _, q := range p.Questions {
		if len(q.tools) == 0 {
			all = append(all, moment{at: q.Asked, line: p.questionLine(q)})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	return all
}

// story writes what happened.
func (p *printer) story() {
	all := p.moments()
	if len(all) == 0 {
		return
	}
	names := 0
	for _, c := range p.Calls {
		names = max(names, uniseg.StringWidth(console.OneLine(c.Name(), widestName)))
	}
	p.heading("WHAT IT DID", "")
	for len(all) > 0 {
		n, shown := p.alike(all), 1
		if n > mostAlike {
			shown = fewAlike
		} else {
			n = shown
		}
		for _, m := range all[:shown] {
			p.moment(m, names)
		}
		if n > shown {
			p.rest(all[shown:n])
		}
		all = all[n:]
	}
}

// Of more than mostAlike calls that are alike, one after another, fewAlike are shown.
const (
	mostAlike = 6
	fewAlike  = 3
)

// alike returns how many moments at the beginning are calls of one tool that went alike, and well if
// they were sent. Each that failed is shown.
func (p *printer) alike(all []moment) (n int) {
	if p.o.Whole || all[0].call == nil {
		return 1
	}
	first := all[0].call
	switch first.Outcome() {
	case string(record.OK), string(record.Refused):
	default:
		return 1
	}
	said := p.howItWent(first)
	for _, m := range all {
		c := m.call
		if c == nil || c.Outcome() != first.Outcome() || c.Name() != first.Name() || c.Writes != first.Writes || p.howItWent(c) != said {
			break
		}
		n++
	}
	return max(1, n)
}

// howItWent is what stands below a call, but for its values.
func (p *printer) howItWent(c *Call) string {
	said, remark := p.WhoAllowed(c, p.o)
	if c.Verdict != nil {
		remark += "\x00" + strings.Join(c.Verdict.Reasons, "\x00")
	}
	return said + "\x00" + remark
}

// rest writes a line for calls that are like those before them.
func (p *printer) rest(all []moment) {
	var which []int
	var answered int64
	first := all[0].call
	for _, m := range all {
		which = append(which, m.call.Number)
		if m.call.End != nil {
			answered += m.call.End.Answer.Size
		}
	}
	slices.Sort(which)
	what, how := "calls", first.Outcome()
	if first.Writes {
		what = "writes"
	}
	if first.Outcome() == string(record.OK) {
		how += ", answered " + text.Size(answered)
	}
	line := fmt.Sprintf("%d more %s like this, %s: %s; --values shows them", len(all), what, numbers(which), how)
	if first.Writes {
		line = p.colors.Yellow(line)
	}
	fmt.Fprintf(p, "             …    %s\n", line)
}

// moment writes one line of the story, and what is below it.
func (p *printer) moment(m moment, names int) {
	when := fmt.Sprintf("  %9s  ", "+"+fmt.Sprintf("%.3fs", m.at.Sub(p.Run.Start).Seconds()))
	if m.call == nil {
		fmt.Fprintf(p, "%s%s\n", when, console.Plain(m.line))
		return
	}
	p.WriteString(when)
	p.oneCall(m.call, names, strings.Repeat(" ", len(when)))
}

// oneCall writes a call and what is known of it.
func (p *printer) oneCall(c *Call, names int, indent string) {
	name := console.OneLine(c.Name(), widestName)
	line := fmt.Sprintf("%-4s %s%s  %-6s  ", fmt.Sprintf("#%d", c.Number), name, strings.Repeat(" ", names-uniseg.StringWidth(name)), c.Does())
	if c.Writes {
		line = p.colors.Yellow(line)
	}
	fmt.Fprintf(p, "%s%s%s\n", line, p.outcome(c), c.took(time.Now()))
	for _, below := range p.below(c, indent) {
		fmt.Fprintf(p, "%s     %s\n", indent, below)
	}
	if q := c.Question; p.o.Whole && q != nil && !c.before && q.Calls[0] == c.Number {
		p.question(q, indent)
	}
}

// took says how long a call took, or is under way by now, how much was answered, and where the server ran, if
// not where it does by default.
func (c *Call) took(now time.Time) (said string) {
	if c.Outcome() == UnderWay && now.After(c.At) { // the clock of another machine may go ahead
		said = " for " + Took(now.Sub(c.At).Microseconds())
	}
	if e := c.End; e != nil && c.Start != nil {
		said += "  " + Took(e.Duration)
		if e.Answer.Size > 0 {
			said += "  answered " + text.Size(e.Answer.Size)
		}
	}
	if c.Start != nil && c.Start.Where != "" {
		said += "  " + console.OneLine(c.Start.Where, widestName)
	}
	return said
}

// below returns what else is known of a call, in lines that stand below it.
func (p *printer) below(c *Call, indent string) (lines []string) {
	below := func(what string) {
		if what != "" {
			lines = append(lines, console.Plain(what))
		}
	}
	below(p.short("", p.arguments(&p.o, c), indent))
	said, remark := p.WhoAllowed(c, p.o)
	if !c.refused() && (c.Writes || c.wasAsked() || c.Verdict != nil) { // its error says the same
		below(strings.TrimSuffix(said+"; "+remark, "; "))
	}
	if c.Verdict != nil && c.Verdict.Decision == "ask" && len(c.Verdict.Reasons) > 0 {
		below("a rule asks: " + strings.Join(c.Verdict.Reasons, "; "))
	}
	if c.End != nil && !c.denied() { // which says the same
		s := p.shownText(&p.o, c.end, "error", &c.End.Error)
		words := p.words(c, p.o)
		same := strings.HasPrefix(said, s.full()) || words != "" && strings.HasSuffix(s.full(), words)
		if s.none || !same {
			below(p.short("error: ", s, indent))
		}
		if c.End.Answer.Kept > 0 {
			below(p.short("answer: ", p.shownText(&p.o, c.end, "answer", &c.End.Answer), indent))
		}
	}
	return lines
}

// question writes the text that the user was shown, below the first call that it is about.
func (p *printer) question(q *Question, indent string) {
	s := p.shownText(&p.o, q.entry, "shown", q.shown())
	if s.none {
		return
	}
	numbering := ""
	if said := q.Numbering(); said != "" {
		numbering = " this, in which " + said
	}
	fmt.Fprintf(p, "%s     the user was shown%s:\n", indent, numbering)
	for _, line := range plainLines(s.full()) {
		fmt.Fprintf(p, "%s     | %s\n", indent, line)
	}
}

// outcome writes how a call ended.
func (p *printer) outcome(c *Call) string {
	said := c.ended()
	switch c.Outcome() {
	case string(record.OK):
		return p.colors.Green(said)
	case Planned:
		return said
	case Waiting, UnderWay:
		return p.colors.Yellow(said)
	}
	return p.colors.Red(said)
}

// ended says in words how a call ended.
func (c *Call) ended() string {
	switch outcome := c.Outcome(); outcome {
	case string(record.Unknown):
		if !c.Writes {
			return noAnswer
		}
		return mayHaveEffect
	case string(record.Timeout), string(record.Cancelled):
		if !c.Writes {
			return outcome
		}
		return outcome + ", may have taken effect"
	case string(record.Refused):
		return "refused, nothing was sent"
	case Planned:
		return "planned, nothing was sent"
	case Waiting:
		return "waits for the user"
	case Unanswered:
		return "unanswered, nothing was sent"
	default:
		return console.Plain(outcome)
	}
}

// What is said of a call that is unknown: whether it took effect matters only if it may write.
const (
	mayHaveEffect = "unknown: may have taken effect"
	noAnswer      = "unknown: no answer came"
)

// short puts a value on one line, and shortens it unless all is wanted.
func (p *printer) short(label string, s shown, indent string) string {
	if s.none {
		if s.note == "" {
			return ""
		}
		return label + "(" + s.note + ")"
	}
	note := ""
	if s.note != "" {
		note = " (" + s.note + ")"
	}
	room := max(20, p.width-len(indent)-len(label)-len(note)-5)
	if p.o.Whole {
		room = 1 << 20
	}
	return label + console.OneLine(s.full(), room) + note
}

// questionLine tells of a question that is about no call.
func (p *printer) questionLine(q *Question) string {
	about := "asked before the code ran"
	if q.About == "input" {
		about = strings.TrimSpace(q.Server+" "+q.Tool) + " asked for input"
	}
	line := "question  " + about + ": " + q.Answer()
	if because := p.Because(q, p.o); because != "" {
		line += ": " + because
	}
	return line
}

// other tells of an entry that is no call.
func other(e *history.Entry) string {
	switch b := e.Body.(type) {
	case *record.Verdict:
		said := "granted"
		if b.Decision != "allow" {
			said = "not granted"
		}
		line := fmt.Sprintf("%-9s %s", said, cmp.Or(b.Tool, b.Server))
		if len(b.Reasons) > 0 {
			line += ": " + strings.Join(b.Reasons, "; ")
		}
		return line
	case *record.Egress:
		host := b.Host
		if b.Port > 0 {
			host += fmt.Sprintf(":%d", b.Port)
		}
		line := fmt.Sprintf("network   %s: %s, %s sent, %s received", host, text.Plural(b.Requests, "request"), text.Size(b.Sent), text.Size(b.Received))
		if b.Refused > 0 {
			line += fmt.Sprintf(", %d refused or failed", b.Refused)
		}
		if b.Rule != "" {
			line += " (" + b.Rule + ")"
		}
		return line
	case *record.File:
		if b.Use == "removed" {
			return "file      removed: " + b.Name
		}
		return strings.TrimSpace(fmt.Sprintf("file      %s: %s, %s %s", cmp.Or(b.Use, "left"), b.Name, text.Size(b.Size), b.Type))
	case *record.Limit:
		line := "limit     " + b.Name
		if b.Max > 0 && b.Unit == "bytes" {
			line += ": " + text.Size(b.Max)
		} else if b.Max > 0 {
			line += fmt.Sprintf(": %d %s", b.Max, b.Unit)
		}
		if b.Effect != "" {
			line += ", " + b.Effect
		}
		return line
	case *record.Pin:
		return "pin       " + PinLine(b)
	case *record.Torn:
		return "torn      entries are missing here: " + b.Error
	}
	return string(e.Kind)
}

// PinLine says what became of the definition of a tool.
func PinLine(b *record.Pin) string {
	line := b.Server + "." + b.Tool + " " + b.Change
	switch b.By {
	case "":
		return line
	case record.ByQuestion:
		return line + " in a question: it counts as only reading"
	}
	return line + " with " + b.By
}
