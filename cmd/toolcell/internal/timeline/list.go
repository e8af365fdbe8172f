package timeline

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// ShortID is the beginning of the ID of a run, which commands accept.
func ShortID(id string) string { return text.Clip(id, 8) }

// From says whose run it is.
func From(r history.Run) string { return cmp.Or(r.Client.Name, r.Command) }

// StatusOf is the status of a run, with what of it needs a look.
func StatusOf(r history.Run) string {
	var parts []string
	if r.Plan {
		parts = append(parts, "dry run")
	}
	calls := "calls"
	if r.UnderWay == 1 {
		calls = "call"
	}
	for _, p := range []struct {
		n    int
		what string
	}{{r.UnderWay, calls + " under way"}, {r.Unknown - r.UnderWay, "unknown"}, {r.Failed, "failed"}, {r.Refused, "refused"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return r.Status
	}
	return r.Status + " (" + strings.Join(parts, ", ") + ")"
}

// LostNote names the runs of a list whose records lack entries that could not be written; "" if there are none.
func LostNote(all []history.Run) string {
	var lost []string
	for _, r := range all {
		if r.Lost > 0 {
			lost = append(lost, console.Plain(ShortID(r.ID)))
		}
	}
	if len(lost) == 0 {
		return ""
	}
	const most = 10
	more := ""
	if len(lost) > most {
		more = fmt.Sprintf(" and %d more", len(lost)-most)
		lost = lost[:most]
	}
	return "entries could not be written of " + strings.Join(lost, ", ") + more + ": not all that these runs did is listed"
}

// Began writes a time as short as it can be told from others.
func Began(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("Jan _2 15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// CodeWidth bounds the beginning of the code in a list.
const CodeWidth = 80

// FirstLine is the first line of the code that says something, or else the session.
func FirstLine(r history.Run, code string) string {
	first := ""
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "import ") && !strings.HasPrefix(line, "from "):
			return console.OneLine(line, CodeWidth)
		case first == "":
			first = line
		}
	}
	if first == "" && r.Session != "" {
		first = "session " + r.Session
	}
	return cmp.Or(console.OneLine(first, CodeWidth), "–")
}
