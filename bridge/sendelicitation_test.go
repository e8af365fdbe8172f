package bridge

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/consent"
)

// lockedBuffer takes what a connection logs.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *lockedBuffer) await(t *testing.T, part string) string {
	t.Helper()
	for {
		b.mu.Lock()
		text := b.text.String()
		b.mu.Unlock()
		if strings.Contains(text, part) {
			return text
		}
		select {
		case <-b.news:
		case <-time.After(10 * time.Second):
			t.Fatalf("no %q in %s", part, text)
		}
	}
}

// TestAFormIsTakenBackInWords: clients show the reason.
func TestAFormIsTakenBackInWords(t *testing.T) {
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"its time is over": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 500*time.Millisecond, errors.New("it was not answered"))
		},
		"it was answered": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(500*time.Millisecond, func() { cancel(errors.New("it was not answered")) })
			return ctx, func() { cancel(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lockedBuffer{news: make(chan struct{}, 1)}
			ours, theirs := mcp.NewInMemoryTransports()
			server, err := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil).Connect(t.Context(), &mcp.LoggingTransport{Transport: ours, Writer: log}, nil)
			if err != nil {
				t.Fatal(err)
			}
			client, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}).Connect(t.Context(), theirs, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := end(t.Context())
			defer cancel()
			q := &consent.Question{Calls: []consent.Call{{Server: "bank", Tool: "pay"}}}
			_, err = display{form: true, titled: true}.ask(ctx, server, q)
			if err == nil || !strings.Contains(err.Error(), "it was not answered") || !errors.Is(err, ctx.Err()) {
				t.Errorf("error %v", err)
			}
			_, told, _ := strings.Cut(log.await(t, "notifications/cancelled"), "notifications/cancelled")
			told, _, _ = strings.Cut(told, "\n") // the client may have answered it already
			if !strings.Contains(told, `"reason":"it was not answered"`) || strings.Contains(told, "context ") {
				t.Errorf("the client is told: %s", told)
			}
		})
	}
}
