package page

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// SandboxView is what the page of the sandbox shows.
type SandboxView struct {
	Summary string // of the checks
	Checks  []Check
	Problem string // why this host could not be checked
	Tables  []Table
	Notes   []string // what could not be looked at
}

// A Check is one fact about this host.
type Check struct {
	Code, Status, Text string
	Cure               string // what to type, with comments for a shell; "" if there is nothing to mend
}

// A Table is what a command lists.
type Table struct {
	Title    string
	Columns  []console.Column
	Rows     [][]string // at most MaxRows
	More     int        // further ones
	None     string     // what to say if there is no row
	Problem  string     // why it cannot be listed
	Commands []Command
}

// MaxRows bounds a table.
const MaxRows = 500

// checkWithin bounds how long a page waits for the checks.
const checkWithin = 30 * time.Second

// sandbox is the page of what code runs in. It checks this host anew, one request after another, since
// that starts sandboxes.
func (s *Server) sandbox(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), checkWithin, errSlow)
	defer cancel()
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		s.fail(w, http.StatusServiceUnavailable, "Another window is still checking this host. Try again later.")
		return
	}
	view := s.o.Sandbox(ctx)
	view.Tables = append([]Table{s.keptReady()}, view.Tables...)
	s.show(w, http.StatusOK, frame{Title: "Sandbox", Page: "sandbox", Body: view})
}

// keptReady lists what processes keep ready for runs.
func (s *Server) keptReady() Table {
	t := Table{Title: "Kept ready for runs", Columns: []console.Column{
		{Name: "PROCESS"},
		{Name: "IMAGE"},
		{Name: "PACKAGES"},
		{Name: "RUNNING", Right: true},
		{Name: "READY", Right: true},
		{Name: "TEMPLATE", Right: true},
		{Name: "FORKS", Right: true},
	}, None: "Nothing: no toolcell serve has run code lately."}
	s.inProcesses(func(c *inbox.Client) bool {
		all, err := c.Sandboxes()
		if err != nil {
			s.o.Log.Debug("asking for sandboxes", "error", err)
		}
		for _, k := range all {
			template, forks := "none", ""
			if k.Template {
				template, forks = "not known", strconv.Itoa(k.Forks)
			}
			if k.Memory > 0 {
				template = text.Size(k.Memory)
			}
			packages := "none"
			if k.Packages {
				packages = "of a script"
			}
			t.Rows = append(t.Rows, []string{strconv.Itoa(c.PID), text.CutAfter(k.Image, 200), packages, strconv.Itoa(k.Running), strconv.Itoa(k.Waiting), template, forks})
		}
		return false
	})
	return t
}

// idle waits for a check that is under way, but not for one that does not end.
func (s *Server) idle() {
	select {
	case s.checking <- struct{}{}:
		<-s.checking
	case <-time.After(5 * time.Second):
	}
}

// heading writes the name of a column as a heading.
func heading(c console.Column) string { return sentence(c.Name) }

// Advice is a cure that is a comment alone: nothing is typed for it.
func (c Check) Advice() string {
	for line := range strings.Lines(c.Cure) {
		if !strings.HasPrefix(line, "# ") {
			return ""
		}
	}
	return strings.ReplaceAll(strings.TrimPrefix(c.Cure, "# "), "\n# ", "\n")
}

// Command is a cure that is typed.
func (c Check) Command() string {
	if c.Advice() != "" {
		return ""
	}
	return c.Cure
}
