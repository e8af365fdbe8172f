package stdio

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// request is one that the session sends.
func request(id float64, method string) *jsonrpc.Request {
	made, _ := jsonrpc.MakeID(id)
	return &jsonrpc.Request{ID: made, Method: method, Params: json.RawMessage(`{}`)}
}

// piped is a server whose ends of the pipes a test holds.
type piped struct {
	*Transport
	notes  *message.Notifications
	input  *os.File // what it gets
	output *os.File // what it says
}

func newPiped(t *testing.T) *piped {
	t.Helper()
	input, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	notes := message.NewNotifications(func() {})
	p := &piped{Transport: OverPipes(stdin, stdout, notes), notes: notes, input: input, output: output}
	t.Cleanup(func() {
		_ = p.Close()
		_ = input.Close()
		_ = output.Close()
	})
	return p
}

// says has the server write text and end its output. It returns what the session sees.
func (p *piped) says(t *testing.T, text string) (seen []jsonrpc.Message) {
	t.Helper()
	if _, err := io.WriteString(p.output, text); err != nil {
		t.Fatal(err)
	}
	_ = p.output.Close()
	for {
		msg, err := p.Read(t.Context())
		if errors.Is(err, io.EOF) {
			return seen
		}
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, msg)
	}
}

// got returns all that the server got.
func (p *piped) got(t *testing.T) string {
	t.Helper()
	_ = p.Close()
	_ = p.stdin.Close() // a Close that leaves it open is found by TestCloseEndsBothPipes
	text, err := io.ReadAll(p.input)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestACallKeepsItsResultAsWritten, and the session gets an answer in its place.
func TestACallKeepsItsResultAsWritten(t *testing.T) {
	p := newPiped(t)
	c := &message.Call{}
	if err := p.Write(c.Begin(t.Context()), request(1, "tools/call")); err != nil {
		t.Fatal(err)
	}
	const result = `{"n": 12345678901234567890.0}`
	seen := p.says(t, `{"jsonrpc":"2.0","id":1,"result":`+result+"}\n")
	if reply, ok := c.Result(); !ok || string(reply.Result) != result {
		t.Errorf("the result is %s, want %s", reply.Result, result)
	}
	if len(seen) != 1 {
		t.Errorf("the session sees %d answers", len(seen))
	}
	if got, want := p.got(t), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`+"\n"; got != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
}

// TestAQuestionDuringACallIsAnswered with the server's own ID.
func TestAQuestionDuringACallIsAnswered(t *testing.T) {
	p := newPiped(t)
	questions := message.NewQuestions()
	stop := p.notes.Collect(t.Context(), &message.Call{}, questions)
	seen := p.says(t, `{"jsonrpc":"2.0","id":"q 1","method":"elicitation/create","params":{"n":1}}`+"\n")
	if len(seen) != 0 || len(questions) != 1 {
		t.Fatalf("the session sees %v, and the call %d questions", seen, len(questions))
	}
	(<-questions).Answer(json.RawMessage(`{"action":"cancel"}`), nil)
	stop()
	if got, want := p.got(t), `{"jsonrpc":"2.0","id":"q 1","result":{"action":"cancel"}}`+"\n"; got != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
}

// TestAMessageThatCannotBeEncodedIsNotSent, not even in part.
func TestAMessageThatCannotBeEncodedIsNotSent(t *testing.T) {
	p := newPiped(t)
	bad := request(1, "tools/call")
	bad.Params = json.RawMessage(`{`)
	if err := p.Write(t.Context(), bad); err == nil {
		t.Error("it was sent")
	}
	if got := p.got(t); got != "" {
		t.Errorf("the server got %q", got)
	}
}

// TestCloseEndsBothPipes: the server learns of it, and so do those that read and write.
func TestCloseEndsBothPipes(t *testing.T) {
	p := newPiped(t)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for name, pipe := range map[string]*os.File{"stdin": p.stdin, "stdout": p.stdout.(*os.File)} {
		if _, err := pipe.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s is open: %v", name, err)
			_ = pipe.Close() // or reading would wait
		}
	}
	if err := p.Write(t.Context(), request(1, "ping")); !message.IsLost(err) {
		t.Errorf("a message after the end: %v", err)
	}
	if _, err := p.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("reading after the end: %v", err)
	}
}

// TestTheEndOfOutputIsNoted for those who wait for it, with what it was.
func TestTheEndOfOutputIsNoted(t *testing.T) {
	p := newPiped(t)
	if err := p.EndError(); err != nil {
		t.Errorf("before: %v", err)
	}
	p.says(t, "bye\n")
	for name, ended := range map[string]<-chan struct{}{"the session": p.Down(), "who waits for the process": p.Process.read} {
		select {
		case <-ended:
		default:
			t.Errorf("%s does not learn of it", name)
		}
	}
	if err := p.EndError(); !errors.Is(err, io.EOF) {
		t.Errorf("after: %v", err)
	}
}
