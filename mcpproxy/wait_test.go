package mcpproxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// stopped returns a server that runs nothing, of a proxy that lives as long as ctx.
func stopped(ctx context.Context) *upstream {
	return &upstream{server: config.Server{Name: "fake"}, upstreamState: &upstreamState{proxy: &Proxy{ctx: ctx}, underway: map[string]bool{}}}
}

// TestOneCallerLosesItsPatience: the next ones do not wait for the same again, and
// work that was begun continues.
func TestOneCallerLosesItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, list := stopped(t.Context()), new(catalog.List)
		starts := 0
		await := func(timeout time.Duration) (*catalog.List, time.Duration, error) {
			begun := time.Now()
			listing := u.share("list", func() (any, error) {
				starts++
				time.Sleep(10 * time.Second)
				return list, nil
			})
			synctest.Wait()
			over := make(chan struct{})
			time.AfterFunc(timeout, func() { close(over) })
			got, err := u.await(t.Context(), "list", listing, over)
			return got, time.Since(begun), err
		}
		if _, took, err := await(2 * time.Second); !errors.Is(err, errNotYet) || took != 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if _, took, err := await(time.Hour); !errors.Is(err, errNotYet) || took != 0 {
			t.Errorf("the second caller, after %v: %v", took, err)
		}
		time.Sleep(9 * time.Second)
		if got, took, err := await(time.Hour); got != list || err != nil || took != 10*time.Second || starts != 2 {
			t.Errorf("once it was done: %v, %v after %v and %d starts", got, err, took, starts)
		}
		u.proxy.finished.Wait()
		if len(u.underway) > 0 {
			t.Errorf("under way: %v", u.underway)
		}
	})
}

// TestASearchWaitsForWhatIsLikelyToCome: a server that hangs costs a search two seconds
// if others can be searched, and as long again as the slowest of them took if that is
// more.
func TestASearchWaitsForWhatIsLikelyToCome(t *testing.T) {
	const ok, bad = true, false
	for name, tt := range map[string]struct {
		some   bool // other servers are known
		after  []time.Duration
		listed []bool
		took   time.Duration
		over   bool
	}{
		"all others are known":      {true, []time.Duration{time.Hour}, []bool{ok}, 2 * time.Second, true},
		"nothing is known":          {false, []time.Duration{time.Hour}, []bool{ok}, 15 * time.Second, true},
		"all come":                  {false, []time.Duration{time.Second, 2500 * time.Millisecond}, []bool{ok, ok}, 2500 * time.Millisecond, false},
		"one comes at once":         {false, []time.Duration{0, time.Hour}, []bool{ok, ok}, 2 * time.Second, true},
		"one after another":         {false, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, time.Hour}, []bool{ok, ok, ok, ok}, 6 * time.Second, true},
		"slow ones":                 {false, []time.Duration{10 * time.Second, time.Hour}, []bool{ok, ok}, 15 * time.Second, true},
		"what fails is not a model": {false, []time.Duration{time.Second, time.Hour}, []bool{bad, ok}, 15 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := knownTools{timeout: searchTimeout}
			listed, over := make(chan bool, len(tt.after)), make(chan struct{})
			for i, d := range tt.after {
				time.AfterFunc(d, func() { listed <- tt.listed[i] })
			}
			begun := time.Now()
			c.wait(listed, len(tt.after), tt.some, over)
			took, closed := time.Since(begun), false
			select {
			case <-over:
				closed = true
			default:
			}
			if took != tt.took || closed != tt.over {
				t.Errorf("%s: over is %v after %v, want %v after %v", name, closed, took, tt.over, tt.took)
			}
		})
	}
}

func TestSharedWorkIsNotBegunAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := stopped(t.Context())
		u.retire(errClosed, 0)
		work := <-u.share("list", func() (any, error) {
			t.Error("it is begun")
			return nil, nil
		})
		if !errors.Is(work.Err, errClosed) {
			t.Errorf("err = %v", work.Err)
		}
		if u.inBackground(func() { t.Error("it is begun") }) {
			t.Error("work in the background is taken on")
		}
	})
}

func TestShortBackoffIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, begun := stopped(t.Context()), time.Now()
		var b backoff
		b.failed(begun, 0)
		if err := waitBackoff(t.Context(), u, b.pause(time.Now()), nil); err != nil || time.Since(begun) != firstPause {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		for range 5 {
			b.failed(time.Now(), time.Second)
		}
		begun = time.Now()
		err := waitBackoff(t.Context(), u, b.pause(time.Now()), errors.New("it is broken"))
		mcptest.WantError(t, err, `server "fake" failed and is not started again before 8s have passed: it is broken`)
		if time.Since(begun) != 0 {
			t.Errorf("it took %v", time.Since(begun))
		}
		for range 20 {
			b.failed(time.Now(), time.Second)
		}
		if got := b.pause(time.Now()); got != longPause {
			t.Errorf("the longest pause is %v", got)
		}
		b.failed(time.Now(), livedWell)
		if got := b.pause(time.Now()); got != firstPause {
			t.Errorf("after a long life the pause is %v", got)
		}
	})
}

func TestWaitingEndsWithTheCallAndTheProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proxy, end := context.WithCancel(t.Context())
		u := stopped(proxy)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("too late"))
		defer cancel()
		mcptest.WantError(t, waitBackoff(ctx, u, time.Second, nil), "waiting for server \"fake\"", "too late")
		time.AfterFunc(100*time.Millisecond, end)
		begun := time.Now()
		if err := waitBackoff(t.Context(), u, time.Second, nil); !errors.Is(err, errClosed) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if pause(proxy, time.Hour) || pause(proxy, 0) || !pause(t.Context(), time.Minute) {
			t.Error("pause does not report whether its context has ended")
		}
	})
}

// TestCallsInFlightEndARetirement, or its time does.
func TestCallsInFlightEndARetirement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := stopped(t.Context())
		begun := time.Now()
		u.retire(errRetired, time.Minute)
		if time.Since(begun) != 0 {
			t.Errorf("without calls it took %v", time.Since(begun))
		}
		if _, _, err := u.acquire(t.Context()); !errors.Is(err, errRetired) {
			t.Errorf("err = %v", err)
		}
	})
}

// TestASlowStartGoesOnForLaterCallers: one that may not wait so long is told to call
// again, and the next one gets what the same start leads to.
func TestASlowStartGoesOnForLaterCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, starts := stopped(t.Context()), 0
		u.since = time.Now()
		start := func() <-chan singleflight.Result {
			return u.share("start", func() (any, error) {
				starts++
				time.Sleep(40 * time.Second)
				return nil, nil
			})
		}
		d, begun := deadline.New(time.Hour), time.Now()
		var ended time.Time
		d.AfterFunc(func() { ended = time.Now() })
		ctx := WithStartWait(t.Context(), StartWait{Max: 25 * time.Second, Pauses: d.Allow(time.Hour)})
		err := u.awaitStart(ctx, start())
		if _, ok := errors.AsType[*SilentError](err); !ok {
			t.Errorf("err = %v", err)
		}
		mcptest.WantError(t, err, `server "fake" is still starting (25 s so far`, "call again")
		if err := u.awaitStart(ctx, start()); err != nil || starts != 1 || time.Since(u.since) != 40*time.Second {
			t.Errorf("the second caller: %v after %v, %d starts", err, time.Since(u.since), starts)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if paused := ended.Sub(begun) - time.Hour; paused != 40*time.Second {
			t.Errorf("the deadline was paused for %v", paused)
		}
	})
}

// TestStartingIsNotTheTimeOfACall, which the entry of a server may limit.
func TestStartingIsNotTheTimeOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := stopped(t.Context())
		u.turns, u.callTimeout = semaphore.NewWeighted(1), 10*time.Second
		u.share("start", func() (any, error) {
			time.Sleep(40 * time.Second)
			return nil, errors.New("it did not start")
		})
		synctest.Wait()
		_, err := u.callInTurn(t.Context(), request{Prepared: &Prepared{}})
		mcptest.WantError(t, err, "it did not start")
	})
}

// TestHangingServersKeepNoOthersFromStarting for a search: after a while they give their
// turns back.
func TestHangingServersKeepNoOthersFromStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(chan struct{}, 1)
		turns <- struct{}{}
		done := giveBack(turns)
		begun := time.Now()
		turns <- struct{}{} // another one's
		if time.Since(begun) != turnTime {
			t.Errorf("it took %v", time.Since(begun))
		}
		done() // takes no turn of another
		if len(turns) != 1 {
			t.Error("the turn of another was given back")
		}
	})
}
