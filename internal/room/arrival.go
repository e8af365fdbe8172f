package room

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sync/semaphore"
)

const (
	// Arriving is for messages of servers that have begun to come. It is no part of the
	// room for decoding, since a message that never ends would keep that from all others.
	Arriving = 384 << 20
	// Arrival is how many times its bytes a message takes of it: its buffer is up to twice
	// as large, and so may be all smaller ones before it together, until they are collected.
	Arrival = 2 * bufferAndGarbage

	bufferAndGarbage = 2
	patience         = 10 * time.Second
	lifetime         = 2 * time.Minute
)

var arriving = semaphore.NewWeighted(Arriving)

// ErrFull says that messages which have begun to come take all the room that there is.
var ErrFull = errors.New("there is no room for it beside the large messages of other calls")

// ErrLate says that a message had room for too long.
var ErrLate = fmt.Errorf("it was not complete within %v minutes", lifetime.Minutes())

// A Buffer is the room that the buffer of one message takes while the message comes. The
// zero value has none, and neither has that of a small message.
type Buffer struct {
	taken int64
	late  *time.Timer
}

// Grow takes room for a buffer of n bytes in place of a smaller one. It waits a few seconds
// for messages of others to end, and no longer: they may never do. The error is ErrFull
// then, or that of ctx. end is called if the room is not given back in time, and has to see
// to it that it is.
func (b *Buffer) Grow(ctx context.Context, n int, end func()) error {
	more := min(bufferAndGarbage*int64(n), Arriving) - b.taken
	if !IsLarge(n) || more <= 0 {
		return nil
	}
	if !arriving.TryAcquire(more) {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrFull)
		defer cancel()
		if arriving.Acquire(ctx, more) != nil {
			return context.Cause(ctx)
		}
	}
	b.taken += more
	if b.late == nil {
		b.late = time.AfterFunc(lifetime, contain.Func("ending a message that does not end", end))
	}
	return nil
}

// Release gives the room back.
func (b *Buffer) Release() {
	if b.late != nil {
		b.late.Stop()
	}
	arriving.Release(b.taken)
	*b = Buffer{}
}
