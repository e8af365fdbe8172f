// Package memory bounds what decoding takes in this process: what code and
// servers send may need many times its size while it is read.
//
// It promises that all decoding together stays within Large and Small, all messages of servers
// that are arriving within Arriving, and all fetching within Fetches; that a wait for room ends
// with its context; and that a large input keeps no small one waiting.
package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sync/semaphore"
)

// Bytes of memory. Small inputs have room of their own.
const (
	Large   = 528 << 20
	Small   = 128 << 20
	smaller = 256 << 10 // than this an input is small
)

// What layers of images, wheels and tarballs take while they are fetched, in bytes, and all of them
// together.
const (
	Layer   = 704 << 20
	Wheel   = 320 << 20
	Tarball = 32 << 20 // of npm
	Fetches = 3 * Layer

	// Image is for the documents of one, which is looked up or pulled.
	Image  = 448 << 20
	Images = 2 * Image
)

// How many times its bytes the decoding of an input takes. Package boundtest measures it.
const (
	Arguments  = 11 // of a call
	Result     = 11 // of a tool
	Definition = 64 // of a tool
	Schema     = 64 // of a tool
	Form       = 64 // of a server
	Message    = 1  // of a server: its parts stay where they are
	Conditions = 64 // arguments of a call that are looked at
	Secrets    = 8  // a result in which secrets are hidden
	Code       = 16 // of a run, with its header
	Output     = 32 // of a run, as its result has it
	SavedTool  = 64 // as code or a file has it
	Lock       = 16 // of npm
)

var (
	large, small = semaphore.NewWeighted(Large), semaphore.NewWeighted(Small)
	fetches      = semaphore.NewWeighted(Fetches)
	images       = semaphore.NewWeighted(Images)
)

// IsLarge reports whether an input of n bytes shares room with large ones.
func IsLarge(n int) bool { return n > smaller }

// Documents waits until there is room for the documents of an image. Its holder may wait for
// the room of its layers.
func Documents(ctx context.Context) (release func(), err error) {
	return acquire(ctx, images, Image)
}

// Fetch waits until there is room for a Layer, a Wheel or a Tarball. Those of several images and sets
// of packages wait for each other. Take it before any lock.
func Fetch(ctx context.Context, size int64) (release func(), err error) {
	return acquire(ctx, fetches, size)
}

func acquire(ctx context.Context, of *semaphore.Weighted, size int64) (release func(), err error) {
	if of.Acquire(ctx, size) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { of.Release(size) }, nil
}

// Take waits until there is room to decode n bytes, which takes so many times as much. The
// error is that of ctx. A holder of room must not take more: two would wait for each other.
func Take(ctx context.Context, n, times int) (release func(), err error) {
	if !IsLarge(n) {
		return acquire(ctx, small, min(int64(n)*int64(times), Small))
	}
	return acquire(ctx, large, min(int64(n)*int64(times), Large))
}

// Decode takes room for n bytes and decodes them. It ends with ctx. Decoding of a large input
// cannot be cancelled: it keeps its room until it is done, without anyone waiting. It must not
// change its input, or anything that others read.
func Decode[T any](ctx context.Context, work string, n, times int, decode func() (T, error)) (value T, err error) {
	release, err := Take(ctx, n, times)
	if err != nil {
		return value, err
	}
	if !IsLarge(n) {
		defer release()
		return decode()
	}
	return contain.Await(ctx, work, func() (T, error) {
		defer release()
		return decode()
	})
}

const (
	// Arriving is for messages of servers that have begun to come. It is no part of the
	// room for decoding, since a message that never ends would keep that from all others.
	Arriving = 384 << 20
	// Arrival is how many times its bytes a message takes of it: its buffer is up to twice
	// as large, and so may be all smaller ones before it together, until they are collected.
	Arrival = 2 * bufferAndGarbage

	bufferAndGarbage = 2
	timeout          = 10 * time.Second
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

// Grow takes room for a buffer of n bytes in place of a smaller one. It waits a few seconds for
// other messages to end, not longer, since they may never end. The error is ErrFull then, or
// that of ctx. Grow calls end if the room is not released in time; end must release it.
func (b *Buffer) Grow(ctx context.Context, n int, end func()) error {
	more := min(bufferAndGarbage*int64(n), Arriving) - b.taken
	if !IsLarge(n) || more <= 0 {
		return nil
	}
	if !arriving.TryAcquire(more) {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrFull)
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
