package mcpproxy

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultHarmsOneCall panics at each boundary of a call while another one is under way:
// the call ends with an error, the other does not notice, and the server can be called
// again. It got the call once at most.
func TestFaultHarmsOneCall(t *testing.T) {
	// Where it is true, the call may have a result: another handshake is tried, or it is
	// there already.
	for point, harmless := range map[string]bool{
		"upstream: locked": false, "taking the session of a server": false, "starting or asking a server": false,
		"starting a server": false, "taking in a started server": false, "shaking hands with a server": true,
		"pins: locked": false, "taking in a message of a server": true, "reading from a server": true, "writing to a server": false,
		"reading the definition of a tool": false, "reporting the progress of a call": true, "giving back the session of a server": true,
		"waiting for server/discover": false,
	} {
		t.Run(point, func(t *testing.T) {
			lines, otherLines := filepath.Join(t.TempDir(), "lines"), filepath.Join(t.TempDir(), "lines")
			s, other := fake(t, "FAKE_LINES", lines), fake(t, "FAKE_LINES", otherLines)
			other.Name = "other"
			p := proxyFor(t, Options{StartTimeout: time.Minute}, s, other)
			hung := make(chan error, 9)
			progress := make(chan struct{}, 8)
			_, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "echo", Arguments: json.RawMessage(`{"n":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			for range cap(hung) { // it answers when ten wait
				go func() {
					_, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "barrier", Arguments: json.RawMessage(`{}`)})
					hung <- err
				}()
			}
			for got := ""; strings.Count(got, `"barrier"`) < cap(hung); time.Sleep(time.Millisecond) { // or the fault could be in one of them
				text, _ := os.ReadFile(otherLines)
				got = string(text)
			}

			var seen, on atomic.Bool
			contain.Inject(t, func(at string) bool { return on.Load() && at == point && seen.CompareAndSwap(false, true) })
			on.Store(true)
			_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "progress", Arguments: json.RawMessage(`{"once":1}`), Progress: func(float64, float64, string) {
				select {
				case progress <- struct{}{}:
				default:
				}
			}})
			on.Store(false)
			if !seen.Load() {
				t.Fatalf("this point was not passed; the call: %v", err)
			}
			if err == nil && !harmless && point != "waiting for server/discover" && point != "reading the definition of a tool" {
				t.Error("the call has a result")
			}
			got, _ := os.ReadFile(lines)
			if n := strings.Count(string(got), `"once"`); n > 1 {
				t.Errorf("the server got the call %d times", n)
			}
			deadline := time.Now().Add(30 * time.Second)
			for { // a server that broke is started again after a pause
				_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "get-pid"})
				if err == nil || time.Now().After(deadline) {
					break
				}
			}
			if err != nil {
				t.Errorf("the next call: %v", err)
			}
			select {
			case err := <-hung:
				t.Fatalf("the other call ended with %v", err)
			default:
			}
			if _, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "barrier", Arguments: json.RawMessage(`{}`)}); err != nil {
				t.Error(err)
			}
			for range cap(hung) {
				if err := <-hung; err != nil {
					t.Errorf("another call: %v", err)
				}
			}
		})
	}
}

// TestFaultInAMessageFailsTheCallThatItAnswers, and no other call of the same server.
func TestFaultInAMessageFailsTheCallThatItAnswers(t *testing.T) {
	p := proxyFor(t, Options{StartTimeout: time.Minute}, fake(t))
	call := func(tool, args string) error {
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool, Arguments: json.RawMessage(args)})
		return err
	}
	if err := call("echo", `{}`); err != nil {
		t.Fatal(err)
	}
	others := make(chan error, 9)
	for range cap(others) {
		go func() { others <- call("barrier", `{}`) }()
	}
	for u, _ := p.upstream("fake"); calls(u) < cap(others); {
		time.Sleep(time.Millisecond)
	}
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "transport: decoding" })
		var panicked *contain.PanicError
		if err := call("echo", `{}`); !errors.As(err, &panicked) {
			t.Errorf("the call: %v", err)
		}
	})
	if err := call("barrier", `{}`); err != nil {
		t.Error(err)
	}
	for range cap(others) {
		if err := <-others; err != nil {
			t.Errorf("another call: %v", err)
		}
	}
}

func calls(u *upstream) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls
}
