package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// A printer writes one timeline.
type printer struct {
	strings.Builder
	*Timeline
	o      Options
	colors console.Colors
	width  int // of what is shortened to one line
	items  []Fact
	blocks []Block
}

// fileWidth is how wide shortened values are where there is no terminal.
const fileWidth = 160

// Print writes the timeline for a person.
func (t *Timeline) Print(out *os.File, o Options) error {
	p := &printer{Timeline: t, o: o, colors: console.ColorsFor(out), width: fileWidth}
	if console.Terminal(out) {
		p.width = console.TextWidth(out)
	}
	p.head()
	p.code()
	p.story()
	p.output()
	for _, b := range p.blocks {
		p.block(b)
	}
	p.noted(p.notes("--json"))
	_, err := io.WriteString(out, p.String())
	return err
}

// head says what run it is, and how it ended.
func (p *printer) head() {
	r := p.Run
	ended := console.Plain(r.Status)
	if r.Duration > 0 {
		ended += " after " + Took(r.Duration)
	}
	if p.End != nil && p.End.ExitCode != nil && *p.End.ExitCode != 0 {
		ended += fmt.Sprintf(", exit code %d", *p.End.ExitCode)
	}
	switch r.Status {
	case "success", history.StatusRunning:
	case history.StatusWaiting:
		ended = p.colors.Yellow(ended)
	default:
		ended = p.colors.Red(ended)
	}
	fmt.Fprintf(p, "%s  %s  %s\n", p.colors.Bold("run "+console.Plain(r.ID)), r.Start.Local().Format(time.DateTime), ended)
	p.facts()
	for _, f := range p.items {
		fmt.Fprintf(p, "  %-9s %s\n", f.Name, f.What)
	}
}

// facts collects what is known of the whole run.
func (p *printer) facts() {
	switch p.Run.Status {
	case history.StatusKilled:
		p.item("killed", "its process ended before the run did; how far it got is not recorded")
	case history.StatusIncomplete:
		p.item("incomplete", "entries after its last one could not be written; how it ended is not recorded")
	}
	p.item("did", p.did())
	p.item("error", p.firstLine("error"))
	p.who()
	p.environment()
	p.item("cost", p.cost())
}

// item adds one line to the head.
func (p *printer) item(name, what string) {
	if what = console.Plain(what); strings.TrimSpace(what) != "" {
		p.items = append(p.items, Fact{name, what})
	}
}

// did sums up the calls.
func (p *printer) did() string {
	var writes, failed, unsure, unheard, underWay, refused, waiting, out int
	for _, c := range p.Calls {
		switch outcome := c.Outcome(); outcome {
		case string(record.Refused), Planned, Unanswered:
			refused++
			continue
		case Waiting:
			waiting++
			continue
		case string(record.OK):
		case UnderWay:
			underWay++
		case string(record.Unknown):
			if c.Writes {
				unsure++
			} else {
				unheard++
			}
		default:
			failed++
		}
		out++
		if c.MayHaveChanged() {
			writes++
		}
	}
	said := "no calls"
	if out > 0 {
		said = text.Plural(out, "call")
	}
	for _, part := range []struct {
		n    int
		what string
	}{{writes, "may have changed something"}, {failed, "failed"}, {unsure, mayHaveEffect}, {unheard, noAnswer}, {underWay, UnderWay}, {refused, "not sent"}, {waiting, "waiting for you"}} {
		if part.n > 0 {
			said += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return said
}

// firstLine returns what a person reads first of a text of the end.
func (p *printer) firstLine(field string) string {
	if p.End == nil || p.End.Error.Size == 0 {
		return ""
	}
	s := p.shownText(&p.o, p.end, field, &p.End.Error)
	if s.none {
		return s.note
	}
	return console.OneLine(s.value, p.width)
}

func (p *printer) who() {
	r := p.Run
	from := strings.TrimSpace(r.Client.Name + " " + r.Client.Version)
	switch {
	case r.Command == "": // the beginning is not on record
	case from == "":
		from = "toolcell " + r.Command
	default:
		from += ", by toolcell " + r.Command
	}
	if p.Start != nil && p.Start.Version != "" {
		from += " (toolcell " + p.Start.Version
		if r.Client.Era != "" {
			from += ", MCP " + r.Client.Era
		}
		from += ")"
	}
	p.item("from", from)
	user := strings.Trim(r.User+"@"+r.Host, "@")
	if p.Start != nil && p.Start.PID > 0 {
		user += fmt.Sprintf(", process %d", p.Start.PID)
	}
	p.item("user", user)
	session := r.Session
	if p.Ready != nil && p.Ready.Continued {
		session += ", continued"
	}
	p.item("session", session)
	p.item("part of", r.Parent)
	if r.Plan {
		p.item("plan", "a dry run: calls that may change something were not sent")
	}
}

// environment says what the code ran in, and what it was allowed to use.
func (p *printer) environment() {
	if p.Start == nil {
		return
	}
	g := p.Start.Grants
	var may []string
	for _, part := range []struct {
		what string
		all  []string
	}{{"servers", g.Servers}, {"hosts", g.Hosts}, {"folders", g.Folders}} {
		if len(part.all) > 0 {
			may = append(may, part.what+" "+strings.Join(part.all, ", "))
		}
	}
	p.item("granted", cmp.Or(strings.Join(may, "; "), "no servers, hosts or folders"))
	if r := p.Ready; r != nil {
		image := r.Image.Name
		if r.Image.Digest != "" && r.Image.Digest != r.Image.Name {
			image += " (" + r.Image.Digest + ")"
		}
		p.item("image", image)
		var packages []string
		for _, pkg := range r.Packages {
			packages = append(packages, strings.TrimSpace(pkg.Name+" "+pkg.Version))
		}
		p.item("packages", strings.Join(packages, ", "))
		p.item("folder", r.Folder)
	} else if p.End != nil && p.Start.Code.Size > 0 { // servers call has none
		p.item("image", "none: the code never ran")
	}
	policy := "none"
	if p.Start.Policy != "" {
		policy = "SHA-256 " + short(p.Start.Policy)
		switch {
		case p.o.PolicyFile == "":
		case p.o.Policy == p.Start.Policy:
			policy += ", " + p.o.PolicyFile + " as it is now"
		default:
			policy += "; " + p.o.PolicyFile + " has changed since"
		}
	}
	p.item("policy", policy)
}

func short(digest string) string { return text.Clip(digest, 12) }

// cost says what the run took, as far as it is known.
func (p *printer) cost() string {
	var parts []string
	add := func(n int64, format, value string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(p.Run.Duration, "%s", Took(p.Run.Duration))
	if c := p.Cost; c != nil {
		add(c.CPU, "%s of processor time", Took(c.CPU))
		add(c.Peak, "%s of memory at most", text.Size(c.Peak))
		add(c.Sent, "%s sent", text.Size(c.Sent))
		add(c.Received, "%s received", text.Size(c.Received))
	}
	var answered int64
	for _, c := range p.Calls {
		if c.End != nil {
			answered += c.End.Answer.Size
		}
	}
	add(answered, "%s", text.Size(answered)+" answered by servers, about "+text.Grouped((answered+3)/4)+" tokens")
	return strings.Join(parts, ", ")
}

func (p *printer) heading(title, note string) {
	fmt.Fprintf(p, "\n%s", p.colors.Bold(title))
	if note != "" {
		fmt.Fprintf(p, "  (%s)", console.Plain(note))
	}
	p.WriteByte('\n')
}

// output collects what the code printed, and why it failed.
func (p *printer) output() {
	if p.End == nil {
		return
	}
	e := p.End
	traceback := p.shownText(&p.o, p.end, "traceback", &e.Traceback)
	stderr := p.shownText(&p.o, p.end, "stderr", &e.Stderr)
	if before, ok := cutEnd(stderr.full(), traceback.full()); ok && !traceback.none {
		stderr.value, stderr.gap, stderr.tail = before, "", "" // it is printed once
		stderr.none = before == ""
	}
	p.add("OUTPUT", p.shownText(&p.o, p.end, "stdout", &e.Stdout))
	p.add("RESULT", p.shownText(&p.o, p.end, "result", &e.Result))
	p.add("STANDARD ERROR", stderr)
	p.add("TRACEBACK", traceback)
	failure := p.shownText(&p.o, p.end, "error", &e.Error)
	switch {
	case p.inHead(failure):
	case traceback.value != "" && strings.Contains(wordsOf(traceback.value), wordsOf(failure.value)):
	default:
		p.add("ERROR", failure)
	}
}

// inHead reports whether the head has all of an error.
func (p *printer) inHead(s shown) bool {
	lines := plainLines(strings.TrimSpace(s.full()))
	return s.none || s.note == "" && len(lines) == 1 && console.OneLine(lines[0], p.width) == console.OneLine(lines[0], len(lines[0])+1)
}

// cutEnd cuts the end of a text, if it has that, as far as a person can tell: the record has what code
// printed as it was, and a traceback without carriage returns and the like.
func cutEnd(s, end string) (before string, ok bool) {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	ends := strings.Split(strings.TrimSpace(end), "\n")
	if len(ends) > len(lines) || wordsOf(strings.Join(lines[len(lines)-len(ends):], "\n")) != wordsOf(end) {
		return s, false
	}
	return strings.TrimSpace(strings.Join(lines[:len(lines)-len(ends)], "\n")), true
}

// wordsOf returns the words of a text as they are shown.
func wordsOf(s string) string { return strings.Join(strings.Fields(console.PlainText(s)), " ") }

// add collects text of several lines that others wrote.
func (p *printer) add(title string, s shown) {
	if s.none && s.note == "" {
		return
	}
	b := Block{Title: title, Note: console.Plain(s.note)}
	if !s.none {
		b.Lines = plainLines(s.full())
	}
	p.blocks = append(p.blocks, b)
}

// block writes text of several lines.
func (p *printer) block(b Block) {
	p.heading(b.Title, b.Note)
	for _, line := range b.Lines {
		fmt.Fprintf(p, "  | %s\n", line)
	}
}

// noted writes the notes.
func (p *printer) noted(notes []string) {
	if len(notes) == 0 {
		return
	}
	p.heading("NOTES", "")
	for _, n := range notes {
		fmt.Fprintf(p, "  %s\n", n)
	}
}

// notes say what the record does not have of the run. Where names who has those that are too many.
func (p *printer) notes(where string) (notes []string) {
	if p.Start == nil {
		notes = append(notes, "the beginning of the run is not on record")
	}
	if p.Run.Lost > 0 {
		notes = append(notes, fmt.Sprintf("entries of this run that could not be written, or not in full: %d", p.Run.Lost))
	}
	for i := range p.entries {
		e := &p.entries[i]
		var more struct {
			Cut    []record.Cut `json:"cut"`
			Hidden []string     `json:"hidden"`
		}
		_ = json.Unmarshal(e.Raw, &more) // of another form it has no such members
		for _, c := range more.Cut {
			notes = append(notes, fmt.Sprintf("of %s only the beginning of %s is there", e.Kind, c.Field))
		}
		for _, rule := range more.Hidden {
			notes = append(notes, fmt.Sprintf("of %s something is blacked out: %s", e.Kind, rule))
		}
		if e.Body == nil {
			notes = append(notes, fmt.Sprintf("an entry %q is of a later version of toolcell", e.Kind))
		}
	}
	const most = 20
	notes = slices.Compact(notes)
	if len(notes) > most {
		notes = append(notes[:most], fmt.Sprintf("and %d more: %s has all", len(notes)-most, where))
	}
	for i, n := range notes {
		notes[i] = console.Plain(n)
	}
	return notes
}
