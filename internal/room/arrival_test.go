package room

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

func TestMessagesThatNeverEndRefuseOthersAndKeepNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		end := func() { ended.Add(1) }
		var stalled []*Buffer
		for range Arriving / (bufferAndGarbage * 48 << 20) {
			b := &Buffer{}
			for _, n := range []int{1 << 20, 16 << 20, 48 << 20} {
				if err := b.Grow(t.Context(), n, end); err != nil {
					t.Fatal(err)
				}
			}
			stalled = append(stalled, b)
		}
		var late, small Buffer
		begun := time.Now()
		if err := late.Grow(t.Context(), 1<<20, end); !errors.Is(err, ErrFull) || time.Since(begun) != patience {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		late.Release() // it has none
		if err := small.Grow(t.Context(), smaller, end); err != nil {
			t.Errorf("a small message: %v", err)
		}
		take(t, 48<<20, Result)() // decoding goes on

		ctx, cancel := context.WithCancelCause(t.Context())
		closed := errors.New("the session has ended")
		cancel(closed)
		if err := late.Grow(ctx, 1<<20, end); !errors.Is(err, closed) {
			t.Errorf("got %v", err)
		}
		waits := make(chan error, 1)
		go func() {
			defer contain.Recover("waiting", func(err error) { waits <- err })
			waits <- late.Grow(t.Context(), 1<<20, end)
		}()
		synctest.Wait()
		stalled[0].Release()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		late.Release()
		time.Sleep(lifetime)
		synctest.Wait()
		if got := ended.Load(); got != int64(len(stalled)-1) {
			t.Errorf("%d of %d were told to end", got, len(stalled)-1)
		}
		for _, b := range stalled {
			b.Release()
		}
		if !arriving.TryAcquire(Arriving) {
			t.Fatal("some room was not given back")
		}
		arriving.Release(Arriving)
	})
}
