package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// freePort returns a port for a program that cannot listen at one of the system's choice. It
// is below those that the system gives to others in the meantime.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
}

// everythingOver starts npm's server-everything in one of its HTTP modes, and
// gives its port.
func everythingOver(t *testing.T, mode string) (port int) {
	t.Helper()
	program := npmProgram(t, "mcp-server-everything")
	port = freePort(t)
	cmd := exec.Command(program, mode)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output := &syncBuffer{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server wrote:\n%s", output)
		}
	})
	waitFor(t, "server-everything to listen", func() bool {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return port
}

//test:mainjob
func TestEverythingOverHTTPAndSSE(t *testing.T) {
	for _, tt := range []struct{ mode, path, kind string }{
		{"streamableHttp", "/mcp", "http"},
		{"streamableHttp", "/mcp", ""}, // the entry does not say which
		{"sse", "/sse", "sse"},
		{"sse", "/sse", ""},
	} {
		t.Run(tt.mode+" as "+tt.kind, func(t *testing.T) {
			entry := map[string]any{"url": fmt.Sprintf("http://127.0.0.1:%d%s", everythingOver(t, tt.mode), tt.path)}
			if tt.kind != "" {
				entry["type"] = tt.kind
			}
			config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"everything": entry}})
			c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
			r := c.python(t, `
import asyncio
from mcp import runtime
print(await mcp_everything.echo(message='hi there'))
print(*await asyncio.gather(*(mcp_everything.get_sum(a=i, b=1) for i in range(5))))
print([h.tool for h in await runtime.search_tool_docs('add two numbers')][:1])
try:
    await runtime.call_tool('everything', 'get-sum', {'a': 1})
except runtime.MCPError as e:
    print('refused', e.server, e.tool)
`, "everything")
			for _, want := range []string{"hi there", "is 1.", "is 5.", "get-sum", "refused everything get"} {
				if r.isError || !strings.Contains(r.text, want) {
					t.Errorf("no %q in %s", want, r.text)
				}
			}
		})
	}
}

// spyTools are those of a server that tells what it should keep.
var spyTools = map[string]fakeTool{
	"leak": func(args) (any, error) {
		return nil, fmt.Errorf("bad key %s, bad token %s", os.Getenv("SPY_KEY"), os.Args[2])
	},
	"crash": func(args) (any, error) {
		fmt.Fprintf(os.Stderr, "panic with key %s, token %s\n", os.Getenv("SPY_KEY"), os.Args[2])
		os.Exit(3)
		return nil, nil
	},
}

// everySecret is what code in a sandbox could look at to find the secrets of a
// server: its responses, its faults, and its configuration.
const everySecret = `
import json, os, glob
from mcp import runtime
print(json.dumps(runtime.discovered_servers(detailed=True), default=str))
for name in ('spy', 'web', 'dead', 'login'):
    for ask in (runtime.describe_server, runtime.list_tools, runtime.query_tool_docs):
        try:
            print(name, await ask(name))
        except Exception as e:
            print(name, type(e).__name__, repr(e), e.args, vars(e))
    for tool in ('leak', 'crash', 'missing'):
        try:
            print(name, await runtime.call_tool(name, tool, {}))
        except Exception as e:
            print(name, tool, type(e).__name__, repr(e), e.args, vars(e))
print(await runtime.search_tool_docs('anything at all'))
print(json.dumps(runtime.discovered_servers(detailed=True), default=str))
print(dict(os.environ))
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + ['/proc/self/mountinfo', '/proc/cmdline']:
    try:
        print(path, open(path, 'rb').read())
    except OSError as e:
        print(path, e)
print('the end')
`

func TestSecretsOfServersAreNotSeenInTheSandbox(t *testing.T) {
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	leaky := mcp.NewServer(&mcp.Implementation{Name: "leaky"}, nil)
	tools := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return leaky }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"tools/call"`) {
			http.Error(w, fmt.Sprint("I got ", r.Header.Get("X-Key"), " and ", r.URL, r.Header), http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		tools.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() }) // after the client, whose stream stays open
	for _, tool := range []string{"leak", "crash"} {
		leaky.AddTool(&mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	}
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprint("no: ", r.Header), http.StatusUnauthorized)
	}))
	t.Cleanup(locked.Close)
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"spy":   map[string]any{"command": exe, "args": []string{"--token", "SECRET-argument"}, "env": map[string]string{fakeServerEnv: "spy", "SPY_KEY": "SECRET-environment"}},
		"web":   map[string]any{"type": "http", "url": web.URL + "/SECRET-path-0123456789?key=SECRET-query", "headers": map[string]string{"Authorization": "Bearer SECRET-bearer", "X-Key": "SECRET-header"}},
		"dead":  map[string]any{"command": "/bin/sh", "args": []string{"-c", `echo "key $SPY_KEY is out of order" >&2; exit 3`}, "env": map[string]string{"SPY_KEY": "SECRET-environment"}},
		"login": map[string]any{"type": "http", "url": locked.URL + "/mcp?key=SECRET-query", "headers": map[string]string{"X-Key": "SECRET-header"}},
	}})
	c := firstHost(t).serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
	r := c.python(t, everySecret, "*")
	for _, want := range []string{
		"the end", "[SPY_KEY]", "[X-Key]", "[--token]", "toolcell servers login login", "out of order",
	} {
		if r.isError || !strings.Contains(r.text, want) {
			t.Errorf("no %q: the servers did not try to tell", want)
		}
	}
	for line := range strings.Lines(r.text) {
		if strings.Contains(line, "SECRET-") {
			t.Errorf("a secret is seen: %.600s", line)
		}
	}
	if t.Failed() {
		t.Log(r.text)
	}
}

func TestKilledProgramLeavesNoServerThatIgnoresIt(t *testing.T) {
	h := firstHost(t)
	mark, called := marker(), marker()
	// A shell as npx is one: it starts the server and waits for it.
	script := "trap '' TERM HUP; sleep " + mark + " & exec 3<&0; \"$0\" <&3; sleep " + mark
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"stubborn": map[string]any{"command": "/bin/sh", "args": []string{"-c", script, exe}, "env": map[string]string{fakeServerEnv: "odd"}},
	}})
	c := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config})
	c.sendCode(t, "await mcp_stubborn.pid()\n"+sleeper(called), "stubborn")
	waitFor(t, "the server to answer", func() bool { return alive(called) })
	started := c.kill9(t)
	waitFor(t, "all of it to be gone", func() bool { return !alive(mark) })
	for _, p := range started {
		waitFor(t, fmt.Sprint("process ", p.pid), func() bool { return !p.alive() })
	}
	_ = c.stop()
}
