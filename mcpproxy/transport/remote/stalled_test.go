package remote

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// TestServerThatStopsInALargeAnswer: the call fails, in words, and not only at its own end.
func TestServerThatStopsInALargeAnswer(t *testing.T) {
	half := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("x", 600<<10)
	const want = "sent a large message, and it was not complete"
	for name, tt := range map[string]struct {
		before string
		read   func(t *testing.T, out *io.PipeReader) error
	}{
		"JSON": {"", func(t *testing.T, out *io.PipeReader) error {
			_, err := linkTo(t, "https://mcp.example", nil).readAnswer(t.Context(), out, func() { out.Close() }, outgoingBody{Method: "tools/call", ID: []byte("1")}, nil)
			return err
		}},
		"events": {"data: ", func(t *testing.T, out *io.PipeReader) error {
			c := &message.Call{}
			_, _ = io.Copy(io.Discard, newEvents(t.Context(), linkTo(t, "https://mcp.example", nil), out, func() { out.Close() }, c))
			return c.Failure()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, in := io.Pipe()
				go func() {
					defer contain.Recover("writing", nil)
					_, _ = io.WriteString(in, tt.before+half)
				}()
				if err := tt.read(t, out); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
