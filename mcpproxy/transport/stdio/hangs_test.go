package stdio

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// taken has the server read what there is of its input.
func (p *piped) taken(t *testing.T) {
	t.Helper()
	if _, err := p.input.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
}

// TestServersThatHangOnDiscover have read it and say nothing to it.
func TestServersThatHangOnDiscover(t *testing.T) {
	const timeout = time.Minute
	for _, tt := range []struct {
		name, method string
		reads        bool
		says         string
		hangs        bool
	}{
		{"says nothing", message.MethodDiscover, true, "", true},
		{"only logs", message.MethodDiscover, true, "ready\n" + `{"level":"info"}` + "\n", true},
		{"only notifies", message.MethodDiscover, true, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n", true},
		{"has not read it", message.MethodDiscover, false, "", false},
		{"was asked something else", message.MethodInitialize, true, "", false},
		{"answers", message.MethodDiscover, true, `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", false},
		{"answers with an error", message.MethodDiscover, true, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}` + "\n", false},
		{"answers what cannot be read", message.MethodDiscover, true, `{"jsonrpc":"2.0","id":1,"result":NaN}` + "\n", false},
		{"asks in turn", message.MethodDiscover, true, `{"jsonrpc":"2.0","id":"a","method":"ping"}` + "\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPiped(t)
				if err := p.Write(t.Context(), request(1, tt.method)); err != nil {
					t.Fatal(err)
				}
				if tt.reads {
					p.taken(t)
				}
				p.says(t, tt.says)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				if got := p.HangsOnDiscover(ctx, timeout); got != tt.hangs {
					t.Errorf("it hangs: %v", got)
				}
				if waited := time.Since(began); tt.hangs && waited < timeout {
					t.Errorf("it had only %v", waited)
				}
			})
		})
	}
}

// TestAServerHasTheWholeTimeFromItsLastReadOn: while it does not read, it is busy.
func TestAServerHasTheWholeTimeFromItsLastReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		p := newPiped(t)
		if err := p.Write(t.Context(), request(1, message.MethodDiscover)); err != nil {
			t.Fatal(err)
		}
		p.taken(t)
		began := time.Now()
		go func() {
			time.Sleep(timeout / 2)
			_ = p.Write(t.Context(), request(2, "ping"))
			time.Sleep(timeout / 4)
			p.taken(t)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if !p.HangsOnDiscover(ctx, timeout) {
			t.Error("it does not hang")
		}
		if waited, want := time.Since(began), timeout/2+timeout/4+timeout; waited < want {
			t.Errorf("it had %v, want %v", waited, want)
		}
	})
}
