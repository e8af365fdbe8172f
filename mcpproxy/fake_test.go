package mcpproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestMain runs this test binary again as the MCP server of a test, when the
// environment says so.
func TestMain(m *testing.M) {
	switch os.Getenv("FAKE_SERVER") {
	case "":
		os.Exit(m.Run())
	case "sdk":
		sdkServer()
	case "asking":
		(&askingServer{out: bufio.NewWriter(os.Stdout)}).run()
	case "host":
		hostProgram()
	default:
		(&fakeServer{out: bufio.NewWriter(os.Stdout)}).run()
	}
}

// sdkServer is a well-behaved server of the newest protocol. Its tool "grow"
// adds a tool while it runs.
func sdkServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk"}, nil)
	type none struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		return &mcp.CallToolResult{}, nil, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// fakeServer speaks MCP in raw lines and misbehaves as its environment says.
type fakeServer struct {
	mu      sync.Mutex
	out     *bufio.Writer
	waiting []json.RawMessage // ids of calls of "barrier"
	hanging string            // id of a call of "hang"
	grown   bool
}

type fakeRequest struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Meta struct {
			ProgressToken json.RawMessage
		} `json:"_meta"`
		Name      string
		Arguments json.RawMessage
		Cursor    string
		URI       string
		RequestID json.RawMessage
	}
}

func (f *fakeServer) run() {
	if path := os.Getenv("FAKE_STARTS"); path != "" {
		file, _ := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(file, os.Getpid())
		file.Close()
	}
	if d, err := time.ParseDuration(os.Getenv("FAKE_SLOW_START")); err == nil {
		time.Sleep(d)
	}
	if os.Getenv("FAKE_DIE_AT_START") != "" {
		fmt.Fprintln(os.Stderr, "API_KEY is missing")
		os.Exit(7)
	}
	if os.Getenv("FAKE_FLOOD") != "" {
		go func() {
			for i := 0; ; i++ {
				f.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise"}}`)
				f.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				f.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
				f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":"f%d","method":"ping"}`, i))
			}
		}()
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if os.Getenv("FAKE_STAY") != "" {
				time.Sleep(time.Hour) // ignores the end of stdin
			}
			return
		}
		appendLine("FAKE_LINES", strings.TrimSuffix(string(line), "\n"))
		var r fakeRequest
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		if r.Method == "" {
			continue // an answer to us
		}
		if os.Getenv("FAKE_LOGS") != "" {
			f.line("INFO handling " + r.Method)
			f.line(`{"level":"info","msg":"structured log"}`)
			f.line(strings.Repeat("x", 300_000))
			f.line("[not json")
		}
		f.handle(r)
	}
}

func (f *fakeServer) handle(r fakeRequest) {
	switch r.Method {
	case "server/discover":
		switch os.Getenv("FAKE_DISCOVER") {
		case "die":
			fmt.Fprintln(os.Stderr, "KeyError: server/discover")
			os.Exit(1)
		case "hang":
			time.Sleep(time.Hour)
		case "ignore":
			return
		}
		f.fail(r, -32601, "method not found")
	case "initialize":
		f.reply(r, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}`+os.Getenv("FAKE_OFFERS")+`},
			"serverInfo":{"name":"fake","version":"1"`+os.Getenv("FAKE_INFO")+`},"instructions":"`+os.Getenv("FAKE_INSTRUCTIONS")+`"}`)
	case "notifications/initialized":
	case "notifications/cancelled":
		if string(r.Params.RequestID) == f.hanging {
			f.record("cancelled")
		}
	case "tools/list":
		f.list(r)
	case "tools/call":
		f.call(r)
	case "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get":
		f.offer(r)
	default:
		f.fail(r, -32601, "method not found")
	}
}

func (f *fakeServer) list(r fakeRequest) {
	appendLine("FAKE_ASKED", "tools")
	switch os.Getenv("FAKE_TOOLS") {
	case "given":
		text, _ := os.ReadFile(os.Getenv("FAKE_GIVEN"))
		f.reply(r, string(text))
	case "silent":
	case "broken":
		f.fail(r, -32603, "no tools today")
	case "pages":
		n, _ := strconv.Atoi(r.Params.Cursor)
		if n == 9 {
			f.reply(r, fmt.Sprintf(`{"tools":[{"name":"tool_%d"}]}`, n))
			return
		}
		f.reply(r, fmt.Sprintf(`{"tools":[{"name":"tool_%d"}],"nextCursor":"%d"}`, n, n+1))
	case "pages given": // one a line, of which each leads to the next
		text, _ := os.ReadFile(os.Getenv("FAKE_GIVEN"))
		n, _ := strconv.Atoi(r.Params.Cursor)
		f.reply(r, strings.Split(string(text), "\n")[n])
	case "loop":
		f.reply(r, `{"tools":[{"name":"again"}],"nextCursor":"same"}`)
	case "endless":
		n, _ := strconv.Atoi(r.Params.Cursor)
		f.reply(r, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n+1))
	case "hostile":
		f.reply(r, `{"tools":[{"name":""},{"name":"  "},{"name":5},"text",null,{"name":"a\u0000b"},{"name":"`+strings.Repeat("n", 600)+`"},
			{"name":"get-Issue","description":"first","inputSchema":7,"alias":"forged"},{"name":"get-Issue","description":"second"},
			{"name":"get_issue"},{"name":"class"},{"name":"9lives"},{"name":"日本"},{"name":"long","description":"`+strings.Repeat("d", 100_000)+`"}]}`)
	case "big":
		var tools []string
		for i := range 100 {
			tools = append(tools, fmt.Sprintf(`{"name":"big_%d","inputSchema":{"type":"object","description":%q,"maximum":9007199254740993}}`, i, strings.Repeat("s", 4096)))
		}
		f.reply(r, `{"tools":[`+strings.Join(tools, ",")+`]}`)
	default:
		extra := ""
		if f.grown {
			extra = `,{"name":"grown"}`
		}
		f.reply(r, `{"tools":[{"name":"echo","description":"Returns its arguments"},{"name":"barrier"},{"name":"crash"},{"name":"big"},
			{"name":"env"},{"name":"spawn"},{"name":"hang"},{"name":"fail"},{"name":"refuse"},{"name":"grow"},{"name":"deep"},{"name":"ask"},{"name":"get-pid"},
			{"name":"leak"},{"name":"leak-result"},{"name":"progress"},{"name":"giant"}`+extra+`]}`)
	}
}

func (f *fakeServer) call(r fakeRequest) {
	switch r.Params.Name {
	case "echo":
		f.reply(r, fmt.Sprintf(`{"content":[],"structuredContent":%s}`, r.Params.Arguments))
	case "barrier": // answers when ten calls wait at once
		f.waiting = append(f.waiting, r.ID)
		if len(f.waiting) == 10 {
			for _, id := range f.waiting {
				f.reply(fakeRequest{ID: id}, `{"content":[{"type":"text","text":"ok"}]}`)
			}
			f.waiting = nil
		}
	case "crash":
		f.record("crash called")
		fmt.Fprintln(os.Stderr, "fatal: out of cheese, token is "+os.Getenv("FAKE_TOKEN"))
		os.Exit(3)
	case "big":
		text := strings.Repeat("b", 17<<20)
		f.reply(r, fmt.Sprintf(`{"content":[{"type":"text","text":"%s"}],"structuredContent":{"text":"%s"}}`, text, text))
	case "env":
		v, _ := json.Marshal(os.Environ())
		f.reply(r, fmt.Sprintf(`{"content":[],"structuredContent":{"env":%s}}`, v))
	case "get-pid":
		f.reply(r, fmt.Sprintf(`{"content":[],"structuredContent":{"pid":%d}}`, os.Getpid()))
	case "spawn":
		cmd := exec.Command("sleep", "600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // and keeps our pipes open
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		f.reply(r, fmt.Sprintf(`{"content":[],"structuredContent":{"pid":%d}}`, cmd.Process.Pid))
	case "hang":
		f.hanging = string(r.ID)
		f.record("hanging")
	case "fail":
		f.reply(r, `{"content":[{"type":"text","text":"no such issue"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"n","extra":[1]}],"isError":true,"_meta":{"n":9007199254740993},"unknown":1.50}`)
	case "refuse":
		f.fail(r, -32602, "bad arguments")
	case "deep":
		f.reply(r, `{"content":[],"structuredContent":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`)
	case "ask":
		f.reply(r, `{"resultType":"input_required","inputRequests":{}}`)
	case "leak":
		f.fail(r, -32000, "tool refused: "+os.Getenv("FAKE_TOKEN")+" is on")
	case "leak-result":
		f.reply(r, fmt.Sprintf(`{"content":[{"type":"text","text":"bad token %s"}],"isError":true}`, os.Getenv("FAKE_TOKEN")))
	case "progress":
		for i := range 10_000 {
			if r.Params.Meta.ProgressToken != nil {
				f.line(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":10000,"message":"working"}}`, r.Params.Meta.ProgressToken, i+1))
			}
		}
		f.reply(r, `{"content":[]}`)
	case "giant":
		f.reply(r, `{"content":[{"type":"text","text":"`+strings.Repeat("g", 200_000_000)+`"}]}`)
	case "grow":
		f.grown = true
		f.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.reply(r, `{"content":[]}`)
	default:
		f.fail(r, -32602, "unknown tool")
	}
}

func (f *fakeServer) reply(r fakeRequest, result string) {
	f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, strings.ReplaceAll(result, "\n", " ")))
}

func (f *fakeServer) fail(r fakeRequest, code int, text string) {
	f.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, text))
}

func (f *fakeServer) line(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = io.WriteString(f.out, s+"\n")
	_ = f.out.Flush()
}

// record writes down for the test that something was reached.
func (f *fakeServer) record(s string) { appendLine("FAKE_NOTES", s) }

// appendLine appends to the file that a variable names, if it does.
func appendLine(variable, s string) {
	if path := os.Getenv(variable); path != "" {
		file, _ := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(file, s)
		file.Close()
	}
}

// fake describes a server "fake" that is this test binary with env.
func fake(t *testing.T, env ...string) config.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := config.Server{Name: "fake", Alias: "fake", Transport: "stdio", Command: exe, Source: "test.json", Env: map[string]string{
		"FAKE_SERVER": "raw",
		"GORACE":      "atexit_sleep_ms=0", // the race detector delays every exit by a second
	}}
	for i := 0; i < len(env); i += 2 {
		s.Env[env[i]] = env[i+1]
	}
	return s
}

// shortTimeout is for servers that hang on server/discover. A busy machine may
// let any server be that slow.
const shortTimeout = 500 * time.Millisecond

// proxyFor returns a Proxy that is closed with the test.
func proxyFor(t *testing.T, o Options, servers ...config.Server) *Proxy {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	p := New(config.Config{Servers: servers}, o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func mustCall(t *testing.T, p *Proxy, tool, args string) string {
	t.Helper()
	res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("calling %s: %v", tool, err)
	}
	return string(res.JSON)
}

// structured decodes the structuredContent of a result.
func structured[T any](t *testing.T, raw string) T {
	t.Helper()
	var res struct{ StructuredContent T }
	if err := json.Unmarshal([]byte(raw), &res); err != nil {
		t.Fatal(err)
	}
	return res.StructuredContent
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

func lines(path string) []string {
	data, _ := os.ReadFile(path)
	return strings.Fields(strings.ReplaceAll(string(data), " ", "_"))
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
