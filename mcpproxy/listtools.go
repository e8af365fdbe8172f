package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/mcpproxy/transport"
	"github.com/toolcell/toolcell/mcpproxy/transport/remote"
	"golang.org/x/sync/singleflight"
)

// listTools follows the pages of tools/list to their end or to our bounds.
func listTools(ctx context.Context, s *transport.Session, overHTTP bool, log *slog.Logger) (catalog.Definitions, error) {
	b := catalog.NewBuilder(log)
	b.OverHTTP = overHTTP && s.InitializeResult() != nil && s.InitializeResult().ProtocolVersion >= remote.FirstWithHeaders
	err := s.Pages(ctx, transport.MethodListTools, func(page json.RawMessage) (bool, error) {
		var res struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(page, &res); err != nil {
			return false, fmt.Errorf("reading the answer: %w", err)
		}
		more := b.Add(res.Tools)
		if !more {
			log.Warn("the tool list is too long", "kept", b.Count())
		}
		return more, nil
	})
	if errors.Is(err, transport.ErrTooManyPages) {
		log.Warn("the tool list has too many pages", "kept", b.Count())
		err = nil
	}
	if err != nil {
		return catalog.Definitions{}, err
	}
	return b.Definitions(), nil
}

// recordInfo records what the server said of itself in the handshake.
func recordInfo(record *catalog.Record, s *transport.Session) {
	said := s.InitializeResult()
	if said == nil {
		return
	}
	record.Remember(func(m *catalog.ServerInfo) {
		m.Failure = ""
		m.Instructions = text.CutAfter(text.Clean(said.Instructions), maxInstructions)
		if info := said.ServerInfo; info != nil {
			m.Title, _ = text.SplitAt(text.Clean(info.Title), maxInfo)
			m.Release, _ = text.SplitAt(text.Clean(info.Version), maxInfo)
			m.About = text.Summary(text.Clean(info.Description))
		}
	})
}

// Bounds on what a server says of itself, in characters; the head of a record must
// hold it.
const (
	maxInstructions = 1000
	maxInfo         = 200
)

// wait waits for shared work, or until ctx ends.
func wait[T any](ctx context.Context, work <-chan singleflight.Result) (T, error) {
	select {
	case done := <-work:
		result, _ := done.Val.(T)
		return result, done.Err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
