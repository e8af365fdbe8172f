package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/deadline"
)

// A fakeRunner plays the runner at the other end of a pipe. It is the sandbox,
// too.
type fakeRunner struct {
	t    *testing.T
	host net.Conn // the host's end
	own  net.Conn

	kill   sync.Once
	ended  chan struct{}
	killed error  // why
	asked  func() // what it does when it is asked where the code is
}

func newFakeRunner(t *testing.T) *fakeRunner {
	f := &fakeRunner{t: t, ended: make(chan struct{})}
	f.host, f.own = net.Pipe()
	return f
}

func (f *fakeRunner) Connect() (net.Conn, error) { return f.host, nil }
func (f *fakeRunner) Ended() <-chan struct{}     { return f.ended }

func (f *fakeRunner) Signal() bool {
	if f.asked != nil {
		go f.asked()
	}
	return f.asked != nil
}

func (f *fakeRunner) Kill(why error) {
	f.kill.Do(func() {
		f.killed = why
		f.own.Close()
		close(f.ended)
	})
}

// exit is how the runner ends by itself.
func (f *fakeRunner) exit() { f.Kill(nil) }

func (f *fakeRunner) send(m frame) {
	if err := f.write(m); err != nil {
		f.t.Errorf("sending %s: %v", m.Type, err)
	}
}

func (f *fakeRunner) write(m frame) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = f.own.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// A message is a frame to the runner.
type message struct {
	Type  string `json:"type"`
	Begun bool   `json:"begun"`
	Start
	ID     int64           `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *CallError      `json:"error"`
}

func (f *fakeRunner) receive() *message {
	var head [4]byte
	_, err := io.ReadFull(f.own, head[:])
	if err == nil {
		body, m := make([]byte, binary.BigEndian.Uint32(head[:])), &message{}
		if _, err = io.ReadFull(f.own, body); err == nil {
			err = json.Unmarshal(body, m)
		}
		if err == nil {
			return m
		}
	}
	f.t.Errorf("receiving: %v", err)
	return &message{}
}

// anyGate is there for runs without effects.
var anyGate = gate.New(gate.Options{})

// hostFunc is a Host.
type hostFunc func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

func (h hostFunc) Answer(ctx context.Context, c Call) (Answer, error) {
	result, err := h(ctx, c.Method, c.Raw)
	return Answer{JSON: result}, err
}

func noCalls(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("not expected")
}

func TestRunAnswersCallsAndReportsTheEnd(t *testing.T) {
	f := newFakeRunner(t)
	go func() {
		f.send(frame{Type: "ready"})
		start := f.receive()
		if start.Type != "start" || start.Code != "the code" || start.Servers[0].Alias != "up" || !slices.Equal(start.Saved, []string{"tool"}) {
			t.Errorf("started with %+v", start)
		}
		f.send(frame{Type: "call", ID: 1, Method: "good", Params: json.RawMessage(`{"a":1}`)})
		if m := f.receive(); m.Type != "reply" || m.ID != 1 || string(m.Result) != `"{\"a\":1}"` {
			t.Errorf("answered %+v", m)
		}
		f.send(frame{Type: "call", ID: 2, Method: "bad"})
		if m := f.receive(); m.ID != 2 || m.Error == nil || *m.Error != (CallError{Message: "no", Kind: "TypeError", Server: "up"}) {
			t.Errorf("answered %+v, %+v", m, m.Error)
		}
		f.send(frame{Type: "done", ExitCode: 3, Result: json.RawMessage(`"42"`), Error: json.RawMessage(`5`), Limit: "files"})
		f.exit()
	}()
	host := hostFunc(func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method == "bad" {
			return nil, fmt.Errorf("wrapped: %w", &CallError{Message: "no", Kind: "TypeError", Server: "up"})
		}
		return json.Marshal(string(params))
	})
	done, err := NewConn(f, "", NewBudget("")).Run(t.Context(), Start{
		Code: "the code", Servers: []Server{{Name: "Up", Alias: "up"}}, Saved: []string{"tool"}, Deadline: deadline.New(time.Hour),
	}, anyGate, host)
	want := Done{Ready: true, Reported: true, ExitCode: 3, Result: "42", Limit: "files"}
	if err != nil || fmt.Sprint(done) != fmt.Sprint(want) {
		t.Errorf("got %+v, %v; want %+v", done, err, want)
	}
}

func TestRunDoesNotWaitForASandboxThatSaidItsEnd(t *testing.T) {
	f := newFakeRunner(t)
	go func() {
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "done", ExitCode: 1})
		f.send(frame{Type: "end", ExitCode: 7})
	}()
	done, err := NewConn(f, "", NewBudget("")).Run(t.Context(), Start{Deadline: deadline.New(time.Hour)}, anyGate, hostFunc(noCalls))
	if err != nil || !done.Ended || done.ExitCode != 7 || f.killed != nil {
		t.Errorf("got %+v, %v; killed %v", done, err, f.killed)
	}
}

func TestSessionRunsSeveralTimes(t *testing.T) {
	f := newFakeRunner(t)
	go func() {
		f.send(frame{Type: "ready"})
		for n := range 3 {
			if m := f.receive(); m.Type != "start" || m.Code != fmt.Sprint(n) || m.Session != "s" {
				t.Errorf("run %d started with %+v", n, m)
			}
			f.send(frame{Type: "done", Kept: n < 2})
		}
		f.exit()
	}()
	c := NewConn(f, "", NewBudget(""))
	for n := range 3 {
		done, err := c.Run(t.Context(), Start{Code: fmt.Sprint(n), Session: "s", Deadline: deadline.New(time.Hour)}, anyGate, hostFunc(noCalls))
		if err != nil || done.Kept != (n < 2) || c.Runs() != n+1 {
			t.Errorf("run %d: %+v, %v", n, done, err)
		}
	}
}

// TestTimeoutAsksWhereTheCodeIs, and kills whether an answer comes or not.
func TestTimeoutAsksWhereTheCodeIs(t *testing.T) {
	for name, tt := range map[string]struct {
		asked func(f *fakeRunner)
		want  string
	}{
		"no answer": {func(*fakeRunner) {}, ""},
		"a text": {func(f *fakeRunner) {
			_, _ = io.WriteString(f.own, "Stack (most recent call first):\n  File \"<run_python>\", line 2 in f\n  File \"<run_python>\", line 3 in <module>\n")
		}, "line 3, in <module>: f()\nline 2, in f: loop()"},
		"a frame": {func(f *fakeRunner) {
			f.send(frame{Type: "where", Frames: json.RawMessage(`[{"file":"<run_python>","line":3,"func":"<module>"}]`)})
		}, "line 3, in <module>: f()"},
		"nonsense": {func(f *fakeRunner) { _, _ = f.own.Write([]byte("\x00\x00\x00\x01x")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRunner(t)
				f.asked = func() { tt.asked(f) }
				go func() {
					f.send(frame{Type: "ready"})
					f.receive()
				}()
				done, err := NewConn(f, "", NewBudget("")).Run(t.Context(), Start{Code: "def f():\n  loop()\nf()", Deadline: deadline.New(time.Minute)}, anyGate, hostFunc(noCalls))
				if !errors.Is(err, ErrTimeout) || done.Reported || f.killed == nil || strings.Join(done.Stack, "\n") != tt.want {
					t.Errorf("got %+v, %v; killed: %v", done, err, f.killed)
				}
			})
		})
	}
}

func TestCancelEndsCallsAndKills(t *testing.T) {
	f := newFakeRunner(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	host := hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		cancel(why)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	go func() {
		f.send(frame{Type: "ready"})
		f.receive()
		f.send(frame{Type: "call", ID: 1, Method: "m"})
	}()
	if done, err := NewConn(f, "", NewBudget("")).Run(ctx, Start{Deadline: deadline.New(time.Hour)}, anyGate, host); !errors.Is(err, why) || !errors.Is(f.killed, why) || !done.Ready {
		t.Errorf("got %+v, %v; killed: %v", done, err, f.killed)
	}
}

func TestWhatNoRunnerSendsKills(t *testing.T) {
	for name, sent := range map[string][]frame{
		"done before the start": {{Type: "done"}},
		"ready twice":           {{Type: "ready"}, {Type: "ready"}},
		"end before done":       {{Type: "ready"}, {Type: "end"}},
		"a stack unasked":       {{Type: "ready"}, {Type: "where"}},
		"done twice":            {{Type: "ready"}, {Type: "done"}, {Type: "done"}},
		"a call to give up":     {{Type: "cancel"}}, // before the start
		"our own frame":         {{Type: "ready"}, {Type: "reply"}},
		"no type":               {{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeRunner(t)
			go func() { _, _ = io.Copy(io.Discard, f.own) }()
			go func() {
				for _, m := range sent {
					_ = f.write(m) // it fails once the connection is closed
				}
			}()
			if done, err := NewConn(f, "", NewBudget("")).Run(t.Context(), Start{Deadline: deadline.New(time.Hour)}, anyGate, hostFunc(noCalls)); !errors.Is(err, ErrProtocol) || f.killed == nil {
				t.Errorf("got %+v, %v; killed: %v", done, err, f.killed)
			}
		})
	}
}

// TestFrameTakesItsSize, whatever is in it: a list that only the host sends once
// took 67 times.
//
//test:alone
func TestFrameTakesItsSize(t *testing.T) {
	for _, field := range []string{"servers", "argv", "saved", "params", "result", "frames", "error", "x"} {
		const elements = 1 << 20
		body := []byte(`{"type":"call","id":1,"method":"m","` + field + `":[` + strings.Repeat("{},", elements) + `{}]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := readFrame(t.Context(), bytes.NewReader(body), len(body)); err != nil {
			t.Errorf("%s: %v", field, err)
		}
		runtime.ReadMemStats(&after)
		if times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body)); times > 1.5 {
			t.Errorf("%s: %.1f times the frame's %d bytes were allocated", field, times, len(body))
		}
	}
}

// TestFramesAreParsedWhereTheyLie, and what is short in a runner's is short.
func TestFramesAreParsedWhereTheyLie(t *testing.T) {
	body := []byte(` {"type":"start","method":"m","id":-7,"params":{"a":[1,{"b":null}]},"exitCode":3,"kept":true,"new":[{}],"type":"call"} `)
	f, err := parseFrame(t.Context(), body)
	if err != nil || f.Type != "call" || f.ID != -7 || f.Method != "m" || string(f.Params) != `{"a":[1,{"b":null}]}` || f.ExitCode != 3 || !f.Kept {
		t.Fatalf("got %+v, %v", f, err)
	}
	if &f.Params[0] != &body[bytes.Index(body, f.Params)] {
		t.Error("the parameters are a copy")
	}
	for _, bad := range []string{
		``, `[]`, `{}x`, `{"type":"call"`, `{"id":1.5}`, `{"type":1}`, `{"type":1,"id":1}`, `{"params":[}`, `{"method":"` + strings.Repeat("m", maxScalar) + `"}`,
		`{"params":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
	} {
		if f, err := parseFrame(t.Context(), []byte(bad)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.40q is %+v, %v", bad, f, err)
		}
	}
	many := `{"type":"call"` + strings.Repeat(`,"x":1`, maxMembers) + "}"
	if f, err := parseFrame(t.Context(), []byte(many)); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "more than 100 members") {
		t.Errorf("got %+v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := parseFrame(ctx, []byte(`{"params":[`+strings.Repeat("1,", 1<<20))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", f, err)
	}
	if ownText(textOf(maxDoneText+1)) != nil || string(ownText(json.RawMessage(`"x"`))) != `"x"` {
		t.Error("texts of done frames are not bounded")
	}
}

func TestSandboxThatHasNoConnection(t *testing.T) {
	f := newFakeRunner(t)
	f.exit()
	c := NewConn(unconnected{f}, "", NewBudget(""))
	if done, err := c.Run(t.Context(), Start{Deadline: deadline.New(time.Hour)}, anyGate, hostFunc(noCalls)); err != nil || fmt.Sprint(done) != fmt.Sprint(Done{}) {
		t.Errorf("got %+v, %v", done, err)
	}
	c.Close()
}

// unconnected is a sandbox that has ended before there was a socket.
type unconnected struct{ *fakeRunner }

func (unconnected) Connect() (net.Conn, error) { return nil, errors.New("it has ended") }
