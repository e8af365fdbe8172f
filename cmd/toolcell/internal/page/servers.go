package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
)

// ServersView is what the page of the servers shows. Servers wrote much of it: it is text.
type ServersView struct {
	Servers []ServerRow
	Notes   []string // files that cannot be read, and what is wrong with the policy
	Next    string   // what to do if there is no server

	// Of a search.
	Found   []FoundTool
	Unknown []string // servers that were not searched, since their tools are not known
	Problem string   // why nothing was searched
}

// A ServerRow is a server in the list.
type ServerRow struct {
	Name, Status, Transport, Source string
	Known                           bool // its tools are
	Tools                           int
	Tokens                          int    // about, of the definitions of its tools
	Remark                          string // of one line, "" for none
}

// A FoundTool is a tool that fits a search.
type FoundTool struct {
	Server, Tool, Signature, Description string
	Score                                float64
}

// ServerView is what the page of one server shows.
type ServerView struct {
	ServerRow
	About    string
	Also     []string    // further files that have the same server
	Docs     []ShownTool // at most MaxTools
	Pins     *PinsView   // nil while its tools are not known
	Problem  string      // why the pins cannot be read
	Commands []Command   // that apply to it
}

// A ShownTool is a tool as a model sees it.
type ShownTool struct {
	Name, Signature, Description string
	Full                         string // its whole description, "" if the other is all of it
}

// PinsView says how the tools of a server differ from their pins.
type PinsView struct {
	Since   time.Time
	Summary string      // "" if none differs
	Changes []PinChange // at most MaxChanges
	More    int         // further ones
	Hidden  []HiddenTool
}

// A PinChange is a tool that differs from its pin.
type PinChange struct {
	Tool, Change string
	Noticed      time.Time
	Reads        bool // the server says that it only reads, which does not count until it is accepted
	Differences  []Difference
	Accept       string // the command
}

// A Difference is how a part of a definition has changed.
type Difference struct{ Part, Diff string }

// A HiddenTool has characters in its definition that cannot be seen.
type HiddenTool struct {
	Tool      string
	In, Lines []string
}

// A Command is what to type, and when.
type Command struct{ Why, Text string }

// Bounds on what a page has of one server.
const (
	MaxTools   = 500
	MaxChanges = 50
)

// maxAsked bounds a search, in characters; the search has a bound of its own above it.
const maxAsked = 500

// readWithin bounds a search.
const readWithin = 20 * time.Second

var errSlow = errors.New("it took too long")

// servers is the page of all servers.
func (s *Server) servers(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), readWithin, errSlow)
	defer cancel()
	var body struct {
		ServersView
		Q     string
		Error string
	}
	var err error
	body.Q = text.Clip(r.URL.Query().Get("q"), maxAsked)
	if body.ServersView, err = s.o.Servers(ctx, body.Q); err != nil {
		body.Error = err.Error()
	}
	s.show(w, http.StatusOK, frame{Title: "Servers", Page: "servers", Body: body})
}

// server is the page of one server.
func (s *Server) server(w http.ResponseWriter, r *http.Request) {
	view, err := s.o.Server(r.Context(), r.PathValue("name"))
	switch {
	case err != nil:
		s.fail(w, http.StatusInternalServerError, "The server cannot be shown: "+err.Error()+".")
	case view == nil:
		s.fail(w, http.StatusNotFound, "There is no server of that name.")
	default:
		body := struct {
			*ServerView
			Logs   []serverLog
			Hidden bool   // what it wrote
			ToShow string // what to type for it
		}{ServerView: view, Logs: s.serverLogs(view.Name)}
		if shown := s.o.Shown(); hidesLog(shown, view.Name, body.Logs) {
			body.Hidden, body.ToShow = true, shown.ToShow
		}
		if view.Status == "idle" && slices.ContainsFunc(body.Logs, func(l serverLog) bool { return l.Running }) {
			view.Status = "running" // in another process
		}
		s.show(w, http.StatusOK, frame{Title: "Server " + text.Clip(view.Name, 100), Page: "server", Body: body})
	}
}

// hidesLog reports whether what a server wrote is not shown: it may be private, or have what code had read from
// a private server and called it with.
func hidesLog(shown timeline.Options, server string, logs []serverLog) bool {
	return shown.HideAll || shown.Hide != nil && (shown.Hide(server) || slices.ContainsFunc(logs, func(l serverLog) bool { return l.Private }))
}

// serverPath is where the page of a server is.
func serverPath(name string) string { return "/servers/" + url.PathEscape(name) }
