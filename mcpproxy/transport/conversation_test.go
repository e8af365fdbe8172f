package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// TestTalks plays the conversations of testdata/talks over stdio. A file is a
// txtar archive whose parts are the steps, in order:
//
//	do        "connect" and "connect legacy" shake hands, "request NAME METHOD
//	          PARAMS" sends a request, "cancel NAME" gives one up, "hangup" ends
//	          the output of the server
//	client    lines that the server receives; "$x" is any value, which has that
//	          name from there on
//	exactly   a line that the server receives, byte for byte
//	server    lines that the server sends, with the values of such names
//	result N  what the request came to: the bytes of its result, or its error
//	progress N  what its caller heard while it went on
func TestTalks(t *testing.T) {
	files, err := filepath.Glob("testdata/talks/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no talks: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			k := newTalk(t)
			for _, part := range strings.Split("\n"+string(archive), "\n-- ")[1:] {
				name, body, _ := strings.Cut(part, " --\n")
				k.step(ctx, name, strings.TrimRight(body, "\n"))
			}
		})
	}
}

// TestLongResultsComeWhole: the SDK's own transport stops at 16 MiB.
func TestLongResultsComeWhole(t *testing.T) {
	archive, err := os.ReadFile("testdata/talks/call.txtar")
	if err != nil {
		t.Fatal(err)
	}
	k := newTalk(t)
	parts := strings.Split("\n"+string(archive), "\n-- ")[1:]
	for _, part := range parts[:len(parts)-2] { // to the request
		name, body, _ := strings.Cut(part, " --\n")
		k.step(t.Context(), name, strings.TrimRight(body, "\n"))
	}
	long := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 17<<20) + `"}]}`
	k.step(t.Context(), "server", `{"jsonrpc":"2.0","id":"$a","result":`+long+`}`)
	if got := <-k.requests["a"].came; got != long {
		t.Errorf("%d bytes came of %d: %.100s", len(got), len(long), got)
	}
}

// talk is one conversation with a session over pipes; the test is the server.
type talk struct {
	t         *testing.T
	notes     *message.Notifications
	transport *stdio.Transport
	dialer    *Dialer
	session   *Session
	connected chan error

	in       *bufio.Reader
	out      *os.File
	values   map[string]any // of names in lines of the client
	requests map[string]*talkRequest
}

type talkRequest struct {
	cancel   context.CancelFunc
	progress []string
	came     chan string
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	fromUs, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	entry := config.Server{Name: "talk"}
	notes := message.NewNotifications(func() {})
	k := &talk{
		t: t, notes: notes, transport: stdio.OverPipes(stdin, stdout, notes), dialer: filled(entry, Dialer{}),
		connected: make(chan error, 1), in: bufio.NewReader(fromUs), out: toUs,
		values: map[string]any{}, requests: map[string]*talkRequest{},
	}
	t.Cleanup(func() {
		toUs.Close()
		k.transport.Close()
		if k.session != nil {
			_ = k.session.mcp.Close()
		}
		fromUs.Close()
	})
	return k
}

func (k *talk) step(ctx context.Context, name, body string) {
	k.t.Helper()
	kind, request, _ := strings.Cut(name, " ")
	switch kind {
	case "do":
		for line := range strings.Lines(body) {
			k.do(ctx, strings.Fields(line))
		}
	case "client":
		for line := range strings.Lines(body) {
			k.receive(strings.TrimSpace(line))
		}
	case "exactly":
		if line, err := k.in.ReadString('\n'); err != nil || line != body+"\n" {
			k.t.Fatalf("the client wrote %s, %v; want %s", line, err, body)
		}
	case "server":
		fmt.Fprintln(k.out, k.fill(body))
	case "result":
		select {
		case got := <-k.requests[request].came:
			if got != body {
				k.t.Fatalf("request %s came to %s, want %s", request, got, body)
			}
		case <-ctx.Done():
			k.t.Fatalf("request %s came to nothing", request)
		}
	case "progress":
		if got := strings.Join(k.requests[request].progress, "\n"); got != body {
			k.t.Fatalf("progress of request %s: %s, want %s", request, got, body)
		}
	default:
		k.t.Fatalf("unknown part %q", name)
	}
}

func (k *talk) do(ctx context.Context, words []string) {
	k.t.Helper()
	switch words[0] {
	case "connect":
		go func() {
			cs, err := k.dialer.connect(ctx, k.transport, len(words) > 1, elicitation.Capabilities{})
			if err == nil {
				k.session = &Session{link: k.transport, notes: k.notes, mcp: cs, since: time.Now()}
			}
			k.connected <- err
		}()
	case "request":
		if err := <-k.connected; err != nil {
			k.t.Fatal(err)
		}
		k.connected <- nil
		var given struct {
			Name      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal([]byte(strings.Join(words[3:], " ")), &given); err != nil {
			k.t.Fatal(err)
		}
		params := &Params{Name: given.Name, Arguments: given.Arguments}
		if params.Arguments != nil { // arguments may have lines themselves
			params.Arguments = json.RawMessage(strings.Replace(string(params.Arguments), ":", "\r\n:\n", 1))
		}
		r := &talkRequest{came: make(chan string, 1)}
		params.Progress = func(done, total float64, text string) {
			r.progress = append(r.progress, fmt.Sprintf("%v/%v %s", done, total, text))
		}
		ctx, r.cancel = context.WithCancel(ctx)
		k.requests[words[1]] = r
		go func() {
			reply, err := k.session.Request(ctx, words[2], params)
			if err != nil {
				r.came <- "error: " + err.Error()
				return
			}
			r.came <- string(reply.Result)
		}()
	case "cancel":
		k.requests[words[1]].cancel()
	case "hangup":
		k.out.Close()
	}
}

// receive reads one line of the client and compares it.
func (k *talk) receive(want string) {
	k.t.Helper()
	line, err := k.in.ReadString('\n')
	if err != nil {
		k.t.Fatal(err)
	}
	var got, expected any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		k.t.Fatalf("%q: %v", line, err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		k.t.Fatalf("%q: %v", want, err)
	}
	if !k.matches(got, expected) {
		k.t.Fatalf("the client wrote %s, want %s", line, want)
	}
}

func (k *talk) matches(got, want any) bool {
	switch want := want.(type) {
	case string:
		if strings.HasPrefix(want, "$") {
			if known, ok := k.values[want]; ok {
				return reflect.DeepEqual(got, known)
			}
			k.values[want] = got
			return true
		}
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok || len(members) != len(want) {
			return false
		}
		for name, value := range want {
			if !k.matches(members[name], value) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}

// fill puts the values of names into lines of the server.
func (k *talk) fill(text string) string {
	for name, value := range k.values {
		raw, err := json.Marshal(value)
		if err != nil {
			k.t.Fatal(err)
		}
		text = strings.ReplaceAll(text, `"`+name+`"`, string(raw))
	}
	return text
}
