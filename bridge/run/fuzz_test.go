package run

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// FuzzTalk sends the host whatever comes, as hostile code on descriptor 3
// can. It must neither panic nor hang, and never call a tool.
func FuzzTalk(f *testing.F) {
	frame := func(body string) string {
		n := len(body)
		return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + body
	}
	ready := frame(`{"type":"ready","python":"3.14.0"}`)
	for _, seed := range []string{
		"", "\xff\xff\xff\xff", ready, ready + frame(`{"type":"done","exitCode":1,"result":"1","error":"x"}`),
		ready + frame(`{"type":"call","id":1,"method":"call_tool","params":{"server":"no","tool":"f","arguments":{}}}`),
		ready + frame(`{"type":"call","id":2,"method":"search_tool_docs","params":{"query":"a","limit":-1}}`),
		ready + frame(`{"type":"call","id":3,"method":"save_tool","params":{"name":"../x","source":"1"}}`),
		ready + frame(`{"type":"call","id":4,"method":"call_tool","params":{"server":"no","tool":"f","args":[1],"named":{"a":{}}}}`),
		ready + frame(`{"type":"call","id":5,"method":"read_resource","params":{"server":"no","uri":"x://1"}}`),
		ready + frame(`{"type":"call","id":6,"method":"get_prompt","params":{"server":"no","name":"p","arguments":{"a":"1"}}}`),
		ready + frame(`{"type":"call","id":7,"method":"export_tools","params":{"server":"no","tools":["f"]}}`),
		ready + frame(`{"type":"call","id":8,"method":"display","params":{"name":"../x.png","data":"iVBORw0KGgo="}}`),
		frame(`{"type":"done"}`) + ready, frame(`null`), frame(`{"type":5}`), ready[:9],
	} {
		f.Add([]byte(seed))
	}
	reached := func(what string) { panic("reached without a grant: " + what) }
	up := fakeUpstreams{"no": {"f": func(context.Context, json.RawMessage) (string, error) { reached("f"); return "", nil }}}.Proxy(f, bridgetest.Options{Read: reached})
	if err := up.AwaitTools(f.Context(), "no"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		s := New(Options{Upstreams: up, Policy: policy.None()})
		ours, theirs := net.Pipe()
		sandbox := &pipeSandbox{conn: ours, ended: make(chan struct{})}
		go func() {
			_, _ = theirs.Write(sent)
			theirs.Close()
			sandbox.Kill(nil)
		}()
		go func() {
			for b := make([]byte, 4096); ; {
				if _, err := theirs.Read(b); err != nil {
					return
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		files := s.artifacts.NewCollector(ctx, NewID())
		defer files.Discard()
		r := &Run{runs: s, python: &interpreter{}, session: &session{}}
		r.gate = r.newGate()
		api := r.newAPI(files.Display)
		_, _ = runner.NewConn(sandbox, "", runner.NewBudget("")).Run(ctx, runner.Start{Code: "code", Deadline: deadline.New(time.Minute)}, r.gate, api)
		if ctx.Err() != nil {
			t.Error("the run did not end")
		}
	})
}

// A pipeSandbox is a sandbox that is no more than the host's end of its socket.
type pipeSandbox struct {
	conn  net.Conn
	ended chan struct{}
	once  sync.Once
}

func (s *pipeSandbox) Connect() (net.Conn, error) { return s.conn, nil }
func (s *pipeSandbox) Signal() bool               { return false }
func (s *pipeSandbox) Kill(error)                 { s.once.Do(func() { close(s.ended) }) }
func (s *pipeSandbox) Ended() <-chan struct{}     { return s.ended }
