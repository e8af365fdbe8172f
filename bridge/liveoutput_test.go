package bridge

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/output"
)

// TestClientFollowsWhatARunPrints, in both eras of the protocol: in the newer
// one, a client asks for it with each request's metadata just so.
func TestClientFollowsWhatARunPrints(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, version := range []string{"2025-11-25", ""} {
		t.Run("protocol "+version, func(t *testing.T) {
			s := newServer(t, nil, nil)
			ours, theirs := mcp.NewInMemoryTransports()
			if _, err := s.MCP().Connect(t.Context(), ours, nil); err != nil {
				t.Fatal(err)
			}
			heard := make(chan *mcp.ProgressNotificationParams, 1000)
			client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params },
			})
			session, err := client.Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "import time\nfor n in range(9):\n    print('step', n)\n    time.sleep(0.2)"}}
			params.SetProgressToken("token")
			begin := time.Now()
			res, err := session.CallTool(t.Context(), params)
			took := time.Since(begin)
			if err != nil || res.IsError {
				t.Fatalf("%+v, %v", res, err)
			}
			var all []string
			for last := -1.0; ; {
				select {
				case p := <-heard:
					if p.Progress <= last || p.ProgressToken != "token" {
						t.Errorf("%+v after %v", p, last)
					}
					last = p.Progress
					all = append(all, p.Message)
					continue
				case <-time.After(2 * output.LiveInterval): // whatever came after the answer would be there
				}
				break
			}
			if len(all) < 2 || len(all) > 2+int(took/output.LiveInterval) || !strings.HasPrefix(all[0], "step 0") {
				t.Errorf("heard %q", all)
			}
		})
	}
}

// TestNothingIsToldAfterTheAnswer reads the lines that a client gets.
func TestNothingIsToldAfterTheAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	t.Parallel()
	s := newServer(t, nil, nil)
	in, send := io.Pipe()
	receive, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, out) }()
	lines := bufio.NewReader(receive)
	next := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	ask := func(text string) {
		if _, err := io.WriteString(send, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	next()
	ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	// It prints until the end, so that something is always left to tell.
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","_meta":{"progressToken":1764115200123456789},"arguments":{"code":"import time\nfor n in range(70):\n    print(n)\n    time.sleep(0.01)"}}}`)
	told := 0
	for line := next(); !strings.Contains(line, `"id":2`); line = next() {
		if told++; !strings.Contains(line, `"progressToken":1764115200123456789`) {
			t.Errorf("got %s", line)
		}
	}
	if told == 0 {
		t.Error("nothing was told")
	}
	time.Sleep(2 * output.LiveInterval)
	ask(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if line := next(); !strings.Contains(line, `"id":3`) {
		t.Errorf("after the answer came %s", line)
	}
	send.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
