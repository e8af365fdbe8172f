package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/deadline"
)

// Why a run did not end by itself.
var (
	// ErrTimeout is the cause when the time of a run was up.
	ErrTimeout = errors.New("the run's time is up")
	// ErrProtocol is the cause when the sandbox sent what no runner sends.
	ErrProtocol = errors.New("malformed frame")
)

// A Sandbox is where a runner is started. Its methods may be called at the same
// time.
type Sandbox interface {
	// Connect waits for the socket to the runner. It fails if the sandbox ends
	// before there is one.
	Connect() (net.Conn, error)
	// Signal sends the signal that asks the runner for its stack, and reports
	// whether it could.
	Signal() bool
	// Kill ends the sandbox and everything in it. It does not wait.
	Kill(why error)
	// Ended is closed once everything in the sandbox has ended.
	Ended() <-chan struct{}
}

// ReadInput is the method of a call for a line of standard input: a string, or
// null at the end. The run's time is paused meanwhile, since a person types.
const ReadInput = "read_input"

// A Host answers requests from code that have no effect, several at the same time. They come
// from hostile code and may be anything; they must not be used once the answer is made.
// An error becomes an exception in the code, as its CallError says if it has one.
type Host interface {
	Answer(ctx context.Context, c Call) (Answer, error)
}

// An Answer is the result of a call, as valid JSON.
type Answer struct {
	JSON json.RawMessage
	// Make, if it is not nil, makes the result when it can be sent. It is for results
	// that are large but made quickly: other answers wait meanwhile.
	Make func() (json.RawMessage, error)
}

// A Start describes a run to the runner.
type Start struct {
	Code     string             `json:"code,omitempty"`
	Argv     []string           `json:"argv,omitempty"`    // sys.argv, in a session of its first run
	File     string             `json:"file,omitempty"`    // __file__, and its name in tracebacks; one of our own if empty
	Servers  []Server           `json:"servers,omitempty"` // that the code can see
	Saved    []string           `json:"saved,omitempty"`   // names of the saved tools
	Session  string             `json:"session,omitempty"` // name of the session; if it is empty, the runner ends with the run
	Printed  []string           `json:"printed,omitempty"` // streams of the session's last run, for PrintedDir
	Network  *Network           `json:"network,omitempty"` // nil if the run may not use the network
	Deadline *deadline.Deadline `json:"-"`                 // of the run; put off for ReadInput and by pauses
	Input    bool               `json:"input,omitempty"`   // sys.stdin asks the host for lines (ReadInput)
	Begun    func()             `json:"-"`                 // called when the code begins: a signal reaches it from then on; may be nil
	// Complete, if it is not empty, is a dotted name that is being typed. No code
	// runs then: Done.Result has the names that may stand in place of its last
	// part, one a line. It needs a session that has run code.
	Complete string `json:"complete,omitempty"`
}

// A Network is how code reaches the network.
type Network struct {
	Variables map[string]string `json:"variables"`       // of the environment, for this run
	Roots     string            `json:"roots,omitempty"` // certificates for RootsFile, in PEM
}

// A Done describes a run that is over. Everything in it but Stack and Ready
// comes from the runner, and so may be forged.
type Done struct {
	Ready    bool     // Python had started
	Reported bool     // the runner said that the code has ended; else the next seven are empty
	ExitCode int      // of the code
	Result   string   // repr of a trailing expression
	Error    string   // last line of the traceback
	Cause    string   // of the error, if it is one that the runner recognizes
	Names    []string // that the code has defined
	Limit    string   // name of a limit that the code hit
	Kept     bool     // the session continues: Run may be called again
	Ended    bool     // no process is left in the sandbox to wait for

	Stack []string // the code's stack at the timeout, outermost first
}

// Causes of an error.
const (
	// CauseToolValue: the code takes the value of a tool for the result that the
	// protocol wraps it in.
	CauseToolValue = "tool value"
	// CauseJSONText, with the name of a text behind it, if it has one: the code takes the
	// text for the JSON that it holds.
	CauseJSONText = "json text "
	// CauseUnawaited, with the name of a call behind it: the code takes the call for
	// its value.
	CauseUnawaited = "unawaited "
	// CauseUnawaitedInDef is the same where the code cannot await.
	CauseUnawaitedInDef = CauseUnawaited + "in def "
)

// A Conn is the host's end of the connection to one runner. Runs follow each
// other: but for Pause, it is not safe for concurrent use.
type Conn struct {
	sandbox Sandbox
	hostDir string
	budget  *Budget
	conn    net.Conn                 // nil before the first run
	in      *bufio.Reader            // of conn: short frames come several at once
	ready   bool                     // Python has said that it is up
	runs    int                      // that have begun
	writing chan struct{}            // full while a frame is written
	active  atomic.Pointer[exchange] // nil if no run is active
}

// NewConn makes a connection to the runner in a sandbox. hostDir is the folder
// that Write returned: tracebacks leave the runner's own frames out. Connections
// that share a budget take turns with large frames.
func NewConn(s Sandbox, hostDir string, b *Budget) *Conn {
	return &Conn{sandbox: s, hostDir: hostDir, budget: b, writing: make(chan struct{}, 1)}
}

// Run has the runner run code and carries out its calls: those that have an effect pass the gate,
// all others h answers. Calls are counted in the order in which the code made them, from 1 on. It returns once the session
// waits for the next run (Done.Kept), or the runner has said that nothing is left
// to wait for (Done.Ended), or everything in the sandbox has ended; by then no
// call is being answered. It kills the sandbox, and returns why, when ctx ends
// (its cause), when the time is up (ErrTimeout) and when the runner does not keep
// to the protocol (ErrProtocol).
func (c *Conn) Run(ctx context.Context, s Start, g *gate.Gate, h Host) (Done, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Complete == "" {
		c.runs++
	}
	r := &exchange{
		Conn: c, start: s, gate: g, host: h, deadline: s.Deadline, account: c.budget.newAccount(), dump: newStackDump(), pauses: newPauses(),
		giveUp: map[int64]context.CancelFunc{},
	}
	inTime := r.deadline.AfterFunc(func() {
		defer cancel(ErrTimeout) // also if asking panics
		r.dump.ask(ctx, c.sandbox.Signal)
	})
	defer inTime()
	c.active.Store(r)
	defer c.active.Store(nil)
	killing := context.AfterFunc(ctx, contain.Func("ending a sandbox", func() { c.sandbox.Kill(context.Cause(ctx)) }))
	defer killing()

	if c.conn == nil {
		if conn, err := c.sandbox.Connect(); err == nil {
			c.conn, c.in = conn, bufio.NewReader(conn)
		}
	}
	if c.conn != nil {
		r.serve(ctx)
	}
	// A run whose time was up is not kept: a stack that comes late would be taken
	// for part of the next one.
	if r.kept() && inTime() && killing() {
		return r.result(true), nil
	}
	if r.broken != nil {
		c.sandbox.Kill(r.broken)
	}
	if !r.ended {
		<-c.sandbox.Ended()
	}
	return r.result(false), r.why(ctx)
}

// Pause makes the time of the active run stand still until resume is called, which must
// be called once. In between the sandbox may be stopped: if a frame arrives that takes
// room of other runs, Pause first waits for its end. It may be called at any time.
func (c *Conn) Pause() (resume func()) {
	r := c.active.Load()
	if r == nil {
		return func() {}
	}
	end := r.pauses.begin()
	resumeDeadline := r.deadline.Pause()
	return func() {
		resumeDeadline()
		end()
	}
}

// Close closes the connection. The sandbox has ended.
func (c *Conn) Close() {
	conn := c.conn
	if conn == nil {
		conn, _ = c.sandbox.Connect() // it may have come all the same
	}
	if conn != nil {
		conn.Close()
	}
}

// Runs returns how many runs have begun.
func (c *Conn) Runs() int { return c.runs }

// codeFile is what the runner calls the code of this run.
func (r *exchange) codeFile() string {
	switch {
	case r.start.File != "":
		return r.start.File
	case r.runs == 1:
		return "<run_python>"
	}
	return fmt.Sprintf("<run_python %d>", r.runs)
}

// beginWriting waits until no frame is being written. The caller calls end when it
// has written its own.
func (c *Conn) beginWriting() (end func()) {
	c.writing <- struct{}{}
	return func() { <-c.writing }
}

// tryWriting is beginWriting, but waits no longer than d.
func (c *Conn) tryWriting(d time.Duration) (end func(), ok bool) {
	select {
	case c.writing <- struct{}{}:
		return func() { <-c.writing }, true
	case <-time.After(d):
		return nil, false
	}
}
