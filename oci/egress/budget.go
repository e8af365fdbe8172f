package egress

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/text"
)

// A budget bounds the bytes of all connections together: those of a run in all, those of a
// server in any hour. Without most it has no room. It is not safe for concurrent use.
type budget struct {
	owner Owner
	most  int64
	spent int64     // bytes that count now
	spans []spanned // of a server, oldest first: when they were spent
}

// spanned are the bytes of a span, which begins with its first.
type spanned struct {
	begun time.Time
	bytes int64
}

// Bytes of a server count from the beginning of their span for one span longer than the window: at
// least for the window.
const (
	window = time.Hour
	span   = time.Minute
)

// A bytesError says that as many bytes have passed as may.
type bytesError struct {
	owner Owner
	most  int64
	again time.Time // when there is room again, for a server
}

// errBytes ends what a run sends and receives.
var errBytes error = &bytesError{owner: Run}

func (e *bytesError) Error() string {
	if e.owner != Server {
		return fmt.Sprintf("the %s has sent and received as many bytes as it may", e.owner)
	}
	again := e.again.UTC().Add(time.Minute - 1).Truncate(time.Minute)
	return fmt.Sprintf("the %s has sent and received as many bytes as it may in an hour (%s); there is room again at %s",
		e.owner, text.Size(e.most), again.Format("15:04 MST"))
}

// add counts bytes that have passed.
func (b *budget) add(n int64, now time.Time) {
	b.forget(now)
	b.spent += n
	if b.owner != Server || n == 0 {
		return
	}
	if last := len(b.spans) - 1; last >= 0 && now.Sub(b.spans[last].begun) < span {
		b.spans[last].bytes += n
		return
	}
	b.spans = append(b.spans, spanned{now, n})
}

// forget drops what no longer counts.
func (b *budget) forget(now time.Time) {
	old := 0
	for ; old < len(b.spans) && now.Sub(b.spans[old].begun) >= span+window; old++ {
		b.spent -= b.spans[old].bytes
	}
	b.spans = slices.Delete(b.spans, 0, old)
}

// exceeded returns an error if more bytes have passed than may.
func (b *budget) exceeded(now time.Time) error {
	if b.forget(now); b.spent <= b.most {
		return nil
	}
	return b.error(now)
}

// full returns an error if no more bytes may pass.
func (b *budget) full(now time.Time) error {
	if b.forget(now); b.spent < b.most {
		return nil
	}
	return b.error(now)
}

// error says when there is room again.
func (b *budget) error(now time.Time) error {
	if b.owner != Server {
		return errBytes
	}
	e := &bytesError{owner: b.owner, most: b.most}
	left := b.spent
	for _, s := range b.spans {
		if left -= s.bytes; left < b.most {
			e.again = now.Add(span + window - now.Sub(s.begun)) // by the clock that forget counts with
			break
		}
	}
	return e
}
