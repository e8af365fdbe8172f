package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/internal/text"
)

// A running is what is shown of a run while it goes on.
type running struct {
	Took         int64 // microseconds, of all processors together
	Memory, Peak int64
	Private      bool // what was printed may have what was read from private servers
	Printed      []printed
}

// A printed is the end of a stream.
type printed struct {
	Title  string
	Before string // how much is left out before, "" for nothing
	Lines  []string
}

// maxPrinted is how many lines of a stream are shown while a run goes on.
const maxPrinted = 60

// runningNow returns what is known of a run, nil if no process has it or none answers: toolcell serve of
// an older version does not.
func (s *Server) runningNow(id string) *running {
	var found *running
	s.inProcesses(func(c *inbox.Client) bool {
		now, ok, err := c.Running(id)
		if err != nil {
			s.o.Log.Debug("looking at a run", "error", err)
		}
		if ok {
			found = &running{
				Took: now.CPU, Memory: now.Memory, Peak: max(now.Peak, now.Memory),
				Private: now.Private, Printed: []printed{lastLines("Output", now.Stdout), lastLines("Errors", now.Stderr)},
			}
		}
		return ok
	})
	return found
}

// lastLines are the last lines of a stream.
func lastLines(title string, p inbox.Printed) printed {
	shown := printed{Title: title}
	if p.Text == "" {
		return shown
	}
	all := lines(p.Text)
	for _, line := range all[:max(0, len(all)-maxPrinted)] {
		p.Before += int64(len(line) + 1)
	}
	if p.Before > 0 {
		shown.Before = text.Size(p.Before) + " before"
	}
	shown.Lines = all[max(0, len(all)-maxPrinted):]
	return shown
}

// inProcesses calls f with a connection to each running toolcell serve, until it finds something.
func (s *Server) inProcesses(f func(*inbox.Client) (found bool)) (found bool) {
	all, err := s.o.Connect()
	if err != nil {
		s.o.Log.Debug("connecting to processes", "error", err)
	}
	defer closeAll(all)
	return slices.ContainsFunc(all, f)
}

// stop ends a run that goes on.
func (s *Server) stop(w http.ResponseWriter, r *http.Request) {
	if !s.mayAct(w, r) {
		return
	}
	id := r.PathValue("id")
	var problem error
	stopped := s.inProcesses(func(c *inbox.Client) bool {
		ok, err := c.End(id)
		problem = cmp.Or(err, problem)
		return ok
	})
	switch {
	case stopped:
		http.Redirect(w, r, "/runs/"+url.PathEscape(id), http.StatusSeeOther)
	case problem != nil:
		s.fail(w, http.StatusBadGateway, "The run was not stopped: "+strings.TrimSuffix(problem.Error(), ".")+".")
	default:
		s.fail(w, http.StatusConflict, "The run was not stopped: it has ended, or its process has no socket that answers.")
	}
}

// A serverLog is what a server wrote in one process.
type serverLog struct {
	inbox.ServerLog
	PID int
}

// serverLogs returns what a server wrote, in each process that has started it.
func (s *Server) serverLogs(name string) (all []serverLog) {
	s.inProcesses(func(c *inbox.Client) bool {
		log, ok, err := c.ServerLog(name)
		if err != nil {
			s.o.Log.Debug("reading what a server wrote", "error", err)
		}
		if ok && !log.Since.IsZero() {
			all = append(all, serverLog{log, c.PID})
		}
		return false
	})
	return all
}
