// Package page serves the page of `toolcell ui`: the questions that wait, what runs did, what code can use, and
// what the policy makes of it.
//
// It promises that
//
//   - only a browser that was opened with a link of the terminal is answered, once for each link,
//   - a page of another origin can neither read it nor have it do anything,
//   - what code, servers and clients wrote is text to the browser, which loads nothing for it,
//   - what widens rights needs a code from the terminal, which the process that asks checks: an agent
//     that steers the browser can read, deny and revoke, and no more.
//
// It is no boundary to programs that run as the user (docs/security.md). What it reads of the record
// and of other processes is bounded there.
package page

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/contain"
)

// Options say what a page shows, and what it may do.
type Options struct {
	Record *history.Record
	// Connect connects to the processes that may have questions. Who calls it closes the connections.
	Connect func() ([]*inbox.Client, error)
	// Shown says of the values of which runs nothing is shown.
	Shown func() timeline.Options
	// ReadsOnly says why nothing can be done on the page but to read, "" if it can. It is asked for each
	// request.
	ReadsOnly func() string
	// ShowCode shows a text with a code at the terminal, where nobody but the user reads it. If it is nil the
	// page cannot approve.
	ShowCode func(text string) error
	// OpenFile opens a file that a run has left, by its URI. Who calls it closes the file.
	OpenFile func(uri string) (*os.File, error)
	// Servers returns the user's servers, and the tools that fit a query if it is not empty. Server returns one
	// of them, nil if there is none of the name. They start no server, and return no secrets.
	Servers func(ctx context.Context, query string) (ServersView, error)
	Server  func(ctx context.Context, name string) (*ServerView, error)
	// Sandbox checks this host. It is called once at a time, and ends soon after ctx.
	Sandbox func(ctx context.Context) SandboxView
	// Policy returns the user's policy as it is now.
	Policy func() rules.File
	// Opened is told that a link was used, as for another one to be shown. It may be nil.
	Opened func()
	Log    *slog.Logger // of what goes wrong; nil for none
}

// A Server serves one page. It is safe for concurrent use.
type Server struct {
	o      Options
	host   string // address and port
	cookie string // of who has opened a link
	pages  func() (pages, error)

	checking chan struct{} // has one while this host is checked
	judging  sync.Mutex    // calls on record: that takes time and memory

	mu      sync.Mutex
	link    string // that was not opened yet; "" if there is none
	begun   map[string]*approval
	streams int
}

// New returns a server for the address of a listener. Close ends what it has begun.
func New(address net.Addr, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		o: o, host: address.String(), cookie: newSecret(), pages: sync.OnceValues(func() (all pages, err error) { defer contain.Error("reading templates", &err); return readPages() }), begun: map[string]*approval{},
		checking: make(chan struct{}, 1),
	}
}

// Link returns a link to open, once. The one before it is void.
func (s *Server) Link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = newSecret()
	return "http://" + s.host + "/open?token=" + s.link
}

// Close lets go of approvals that were begun, and waits for a check that is under way.
func (s *Server) Close() {
	s.idle()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.begun {
		_ = a.process.Close()
		delete(s.begun, id)
	}
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler:           contain.Handler("answering a request", s.Handler()),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { defer contain.Recover("ending the page", nil); _ = web.Close() })
	defer stop()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// Handler answers requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f http.HandlerFunc) {
		mux.Handle(pattern, contain.Handler("making a page", f))
	}
	handle("GET /{$}", s.waiting)
	handle("GET /runs", s.runs)
	handle("GET /runs/{id}", s.run)
	handle("GET /runs/{id}/files/{n}", s.file)
	handle("GET /compare", s.compare)
	handle("GET /servers", s.servers)
	handle("GET /servers/{name}", s.server)
	handle("GET /policy", s.policy)
	handle("GET /policy/rule", s.rule)
	handle("GET /sandbox", s.sandbox)
	handle("GET /events", s.events)
	handle("GET /static/{name}", s.static)
	handle("POST /runs/{id}/stop", s.stop)
	handle("POST /questions/{id}/begin", s.begin)
	handle("POST /questions/{id}/approve", s.approve)
	handle("POST /questions/{id}/deny", s.deny)
	handle("POST /questions/{id}/revoke", s.revoke)
	handle("GET /", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, http.StatusNotFound, "There is no such page.")
	})
	return s.guard(mux)
}
