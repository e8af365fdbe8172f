package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/stdio"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
)

// Options configure a Server. The zero value works.
type Options struct {
	Version string
	Output  OutputMode // compact if empty
	// FormTimeout is how long a form that the client shows during a call waits for the user's
	// answer, 45 s if 0: clients end calls that take long.
	FormTimeout time.Duration
	// Current returns Output and FormTimeout as the user has them now. It may be nil.
	Current func() (OutputMode, time.Duration)
	Log     *slog.Logger // nothing is logged if nil
	Signals *signals.Signals
}

// current returns the options as the user has them now.
func (o Options) current() Options {
	if o.Current != nil {
		o.Output, o.FormTimeout = o.Current()
	}
	o.Output, o.FormTimeout = cmp.Or(o.Output, OutputCompact), cmp.Or(o.FormTimeout, 45*time.Second)
	return o
}

// A Server lets MCP clients run code. It is safe for concurrent use.
type Server struct {
	o           Options
	runs        *run.Runs
	connections connections
	awake       sync.Once // a client has connected
}

// New makes a server of runs.
func New(runs *run.Runs, o Options) *Server {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Server{o: o, runs: runs, connections: connections{open: map[*mcp.ServerSession]*connection{}, ended: runs.Queue().Disconnect}}
}

// manualURI is the resource that holds the manual. It can also be read, but is not
// listed, under the name that it has in the Python original.
const (
	manualURI         = "resource://toolcell/capabilities"
	originalManualURI = "resource://mcp-server-code-execution-mode/capabilities"
)

// toolName is the name of the one tool.
const toolName = "run_python"

// toolDescription has to say in as few tokens as possible what a model needs to
// use the tool well: that code reaches other servers from inside, and how to
// find out more. A test bounds the whole tools/list answer to 200 tokens.
const toolDescription = "Run Python in a fresh sandbox without network. It calls the user's MCP servers: " +
	"from mcp import runtime; runtime.discovered_servers(), await runtime.search_tool_docs(need), " +
	"await runtime.query_tool_docs(server), await mcp_<server>.<tool>(**args). " +
	"Manual: runtime.capability_summary(). Only what you print returns."

// inputSchema is written by hand: a generated one is longer.
var inputSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"code":{"type":"string"},` +
	`"servers":{"type":"array","items":{"type":"string"},"description":"it may call; * is all"},` +
	`"timeout":{"type":"integer","description":"seconds"},` +
	`"session":{"type":"string","description":"keeps variables"},` +
	`"plan":{"type":"boolean","description":"dry run"}},"required":["code"]}`)

// MCP returns the server as an MCP server with its one tool and one resource.
func (s *Server) MCP() *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "toolcell", Version: s.o.Version},
		// Empty, not nil: nil advertises logging, which this server does not
		// have.
		&mcp.ServerOptions{
			Capabilities:            &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
			RootsListChangedHandler: s.rootsChanged, //nolint:staticcheck // clients of before 2026-07-28 still send it
			SetCacheable:            func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { *c = forUser },
		},
	)
	// Whatever the client requests first, a call will follow soon.
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			defer s.awake.Do(func() {
				defer contain.Recover("preparing the first run", nil)
				s.runs.Prepare()
			})
			if method == "tools/list" {
				// A client that only lists has servers ended, too, that are gone from the config files.
				s.runs.Discover()
			}
			if read, ok := req.(*mcp.ReadResourceRequest); ok && read.Params != nil && read.Params.URI == originalManualURI {
				return readManual(ctx, read)
			}
			if strings.HasPrefix(method, "prompts/") && since2026(req) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("there are no prompts: %q is not offered", method)}
			}
			return next(ctx, method, req)
		}
	})
	server.AddReceivingMiddleware(s.exportRequests)
	server.AddReceivingMiddleware(containRequests) // the last one is the outermost
	server.AddSendingMiddleware(withSchema)
	server.AddTool(&mcp.Tool{Name: toolName, Title: "Run Python", Description: toolDescription, InputSchema: inputSchema}, s.runPython)
	server.AddResource(&mcp.Resource{
		URI: manualURI, Name: "capabilities", Title: "run_python manual", MIMEType: "text/markdown", Size: int64(len(runner.Manual)),
	}, readManual)
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: artifacts.URITemplate, Name: "run files", Title: "Files that runs left in /workspace/out",
	}, s.readFile)
	return server
}

// containRequests keeps a panic inside the one request of the client that caused it: the
// SDK handles each in a goroutine of its own.
func containRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer contain.Recover("answering a request", func(panicked error) {
			res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: panicked.Error()}
		})
		return next(ctx, method, req)
	}
}

// since2026 reports whether a request is of 2026-07-28 or later: there, a server that
// answers prompts/list has to declare prompts, which the SDK answers with an empty list.
// Before, clients may ask regardless, and fail if there is no list.
func since2026(req mcp.Request) bool {
	r, ok := req.(interface{ ProtocolVersion() string })
	return ok && r.ProtocolVersion() >= "2026-07-28"
}

func readManual(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Cacheable: forUser, Contents: []*mcp.ResourceContents{
		{URI: req.Params.URI, MIMEType: "text/markdown", Text: runner.Manual},
	}}, nil
}

// forUser keeps those between toolcell and the user's client from caching what runs leave:
// unless told otherwise, the SDK says that all may.
var forUser = mcp.Cacheable{CacheScope: "private"}

// runPython answers one tools/call: it begins a run, or comes back to one that waits
// for an answer.
func (s *Server) runPython(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := &call{
		server: s, connection: s.connections.of(request.Session, request.Extra), display: displayOf(request), report: progressTo(ctx, request), request: request,
	}
	r, input, err := c.findRun(ctx)
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, wire
	}
	if err != nil {
		return s.answer(ctx, c.connection, run.Refuse(err))
	}
	if input != nil {
		return input, nil
	}
	r.CameBy(ctx)
	input, res := c.wait(ctx, r)
	if input != nil {
		return input, nil
	}
	return s.answer(ctx, c.connection, res)
}

// findRun returns the run that a call is about, which it may begin. If the client has to be
// asked for its folder first, input does.
func (c *call) findRun(ctx context.Context) (r *run.Run, input *mcp.CallToolResult, err error) {
	req, err := parseArguments(c.request.Params.Arguments)
	if err != nil {
		return nil, nil, err
	}
	runs, client := c.server.runs, &c.connection.client
	c.digest, c.back = digestOf(req), consent.IsID(req.Session)
	switch {
	case c.request.Params.RequestState != "" && c.request.Params.RequestState != rootsState:
		r, err = c.resumeWithAnswer()
		return r, nil, err
	case c.back && strings.TrimSpace(req.Code) != "":
		return nil, nil, fmt.Errorf("session %q is a run that waits for an answer: come back to it with code=\"\"; other code needs another session, or none", req.Session)
	case c.back, consent.MeansID(req.Session) && strings.TrimSpace(req.Code) == "":
		c.back = true
		r, err = runs.Resume(client, req.Session)
		return r, nil, err
	}
	if req.Session != "" {
		if id := runs.AskedIn(client, req.Session); id != "" { // the new call would wait for it, and the user would not know
			return nil, nil, fmt.Errorf("session %q has a run that waits for the user's answer: come back to that first, with code=\"\" and session=%q", req.Session, id)
		}
	}
	req.Client, req.Progress, req.Lines, req.Span = client, c.report, true, signals.SpanOf(ctx)
	req.Elicits = mcpproxy.ElicitCapabilities{Form: c.display.form, URL: c.display.url, ByRequest: !c.display.multiRound}
	if runs.ShowsFolders() {
		if req.Folder, input, req.FolderErr = c.folder(ctx); input != nil {
			return nil, input, nil
		}
	}
	if c.request.Params.RequestState == rootsState || len(c.request.Params.InputResponses) > 0 {
		req.Rounds = 1
	}
	return runs.Begin(req), nil, nil
}

// answer writes a result as the client gets it.
func (s *Server) answer(ctx context.Context, c *connection, r *run.Result) (*mcp.CallToolResult, error) {
	release, err := memory.Take(ctx, r.Size(), memory.Output)
	if err != nil {
		return nil, err
	}
	defer release()
	s.runs.LogNotes(r)
	r = r.With(c.first)
	return &mcp.CallToolResult{
		Content:           resultText{forModel(c, r)}.contents(s.o.current().Output),
		StructuredContent: r,
		IsError:           r.IsError(),
	}, nil
}

// forModel returns r as a model reads it, whom each word costs tokens: without the
// notes about the host, which it can do nothing about, but with one, once, if code
// is isolated less than usual. The structured content has all.
func forModel(c *connection, r *run.Result) *run.Result {
	short := r.WithoutHostNotes()
	weaker := slices.DeleteFunc(strings.Split(r.Isolation, "; "), func(part string) bool { return part == "" || strings.Contains(part, "(watched-limits)") })
	if text := strings.Join(weaker, "; "); text != "" && c.first("weaker: "+text) {
		short.Notes = append(short.Notes, "isolation is weaker than usual: "+text)
	}
	return short
}

// readFile answers resources/read for a file of a run.
func (s *Server) readFile(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	files := s.runs.Files()
	s.connections.of(req.Session, req.Extra).client.Taint.Add(files.Private(req.Params.URI)...)
	c, err := files.Read(req.Params.URI)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// progressTo reports the run's progress to the client, if it asked for that.
func progressTo(ctx context.Context, call *mcp.CallToolRequest) func(done, total int64, text string) {
	token := call.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	var mu sync.Mutex
	last, highest := time.Time{}, float64(-1)
	return func(done, total int64, text string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 200*time.Millisecond && done < total {
			return
		}
		last = time.Now()
		// "The progress value MUST increase with each notification."
		// (MCP specification, Progress)
		value := float64(done)
		if total <= 0 {
			value = highest + 1 // the text is what matters
		}
		if value <= highest {
			return
		}
		highest = value
		_ = call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: value, Total: float64(total), Message: text,
		})
	}
}

// Serve speaks MCP with one client over in and out, until the client closes in, or no longer reads
// out, or ctx ends. It ends runs that are still active and waits for them.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	defer s.runs.Close()
	// Ending the session does not end its handlers: ending the runs does.
	defer context.AfterFunc(ctx, contain.Func("ending all runs", s.runs.End))()
	defer func(start time.Time) { s.o.Signals.ServerSession(time.Since(start)) }(time.Now())
	client := stdio.New(in, out, s.o.Log)
	err := s.MCP().Run(ctx, client)
	// Run returns any one of the errors that follow from it.
	if first := client.Broken.Load(); first != nil {
		err = fmt.Errorf("writing to the client: %w", *first)
	}
	for _, gone := range []error{io.EOF, io.ErrClosedPipe, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil // we are to end
	}
	return err
}
