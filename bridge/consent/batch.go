package consent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// A batch is what becomes one question.
type batch struct {
	calls []Call
	size  int // of their arguments
	done  chan struct{}

	// The fields below are there once it is done.
	verdicts []verdict // of the calls; none if there could be no question
	err      error     // why not
}

// A verdict is what becomes of a call. The zero value denies.
type verdict struct {
	allowed bool
	why     error // it is not
}

// verdict returns that of one of the calls, as an error.
func (b *batch) verdict(i int) error {
	switch {
	case b.err != nil:
		return b.err
	case i < len(b.verdicts) && b.verdicts[i].allowed:
		return nil
	case i < len(b.verdicts) && b.verdicts[i].why != nil:
		return b.verdicts[i].why
	}
	return ErrDenied
}

// Announce says that a call is on its way: until arrived is called, a question waits
// for it a little, so that the calls of one gather are one question. With more, others
// are about to follow.
func (r *Asker) Announce(more bool) (arrived func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more = time.Time{}
	if more {
		r.more = time.Now().Add(moreTimeout)
	}
	if r.onWay == 0 {
		r.arrived = make(chan struct{})
	}
	r.onWay++
	return sync.OnceFunc(func() {
		defer contain.Recover("noting that a call has arrived", nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.onWay--; r.onWay == 0 {
			close(r.arrived)
		}
	})
}

// Ask asks whether a call may be made, and waits for the answer: nil, ErrDenied,
// ErrStopped, ErrExpired, ErrNoUser, or that too many runs wait. The first two may have what the
// user says. arrived is that of Announce.
func (r *Asker) Ask(ctx context.Context, c Call, arrived func()) error {
	if r.o.NoUser {
		arrived()
		return ErrNoUser
	}
	b, i, err := r.join(c)
	arrived()
	if err != nil {
		return err
	}
	select {
	case <-b.done:
		return b.verdict(i)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.life.Done():
		return context.Canceled
	}
}

// maxAsked bounds the arguments of the calls of one question, in bytes. They stay in
// memory until the answer.
const maxAsked = 1 << 20

// join adds a call to the batch that becomes the next question, and returns its place.
func (r *Asker) join(c Call) (*batch, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(c.Arguments)
	if r.open != nil {
		size += r.open.size
	}
	if size > maxAsked {
		return nil, 0, fmt.Errorf("it needs the user's approval, and the arguments of what is asked have %d bytes, of at most %d", size, maxAsked)
	}
	if r.open == nil {
		r.open = &batch{done: make(chan struct{})}
		go r.askBatch(r.open)
	}
	r.open.calls = append(r.open.calls, c)
	r.open.size = size
	return r.open, len(r.open.calls) - 1, nil
}

// Calls that come within batchTime of each other are one question; so are those that
// are on their way by then and come within batchTimeout, such as those whose server
// has yet to start.
const (
	batchTime    = 20 * time.Millisecond
	moreTimeout  = 500 * time.Millisecond // for those that the code says are about to follow
	batchTimeout = time.Second
)

// askBatch asks about a batch. If that panics, all of its calls are denied.
func (r *Asker) askBatch(b *batch) {
	defer close(b.done)
	defer contain.Recover("asking the user", func(err error) {
		b.verdicts, b.err = nil, err
		r.closeBatch(b)
	})
	r.turn.Lock()
	defer r.turn.Unlock()
	r.fill(b)
	contain.Point("consent: asking")
	verdicts := make([]verdict, len(b.calls))
	var asked []int // places in b.calls
	for i, c := range b.calls {
		if verdicts[i].allowed = !c.Once && r.Granted(c) != ""; !verdicts[i].allowed {
			asked = append(asked, i)
		}
	}
	if len(asked) > 0 {
		// They came over several threads and servers: without this, in another order each time.
		slices.SortStableFunc(asked, func(i, j int) int { return b.calls[i].Number - b.calls[j].Number })
		q := Question{}
		for _, i := range asked {
			q.Calls = append(q.Calls, b.calls[i])
		}
		answer, err := r.ask(r.life, &q)
		for place, i := range asked {
			verdicts[i] = answer.verdict(place, err)
		}
	}
	b.verdicts = verdicts
}

// closeBatch ends that calls can join a batch.
func (r *Asker) closeBatch(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == b {
		r.open = nil
	}
}

// fill waits for the calls that come together with the first: until none came for
// batchTime and none is on its way, but for no longer than batchTimeout. Then it
// closes the batch.
func (r *Asker) fill(b *batch) {
	timeout, cancel := context.WithTimeout(r.life, batchTimeout)
	defer cancel()
	for known := 0; ; {
		select {
		case <-time.After(batchTime):
		case <-timeout.Done():
		}
		arrived, n, whole := r.isFull(b, known, timeout.Err() != nil)
		if whole {
			return
		}
		known = n
		if arrived != nil {
			select {
			case <-arrived:
			case <-timeout.Done():
			}
		}
	}
}

// isFull closes the batch if no call may join it any more: none did since there were
// known of them and none is on its way, or the time is over.
func (r *Asker) isFull(b *batch, known int, over bool) (arrived <-chan struct{}, n int, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = len(b.calls)
	whole = over || n == known && r.onWay == 0 && !time.Now().Before(r.more)
	if whole {
		r.open = nil
	}
	return r.arrived, n, whole
}
