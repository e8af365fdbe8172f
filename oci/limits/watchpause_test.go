package limits

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// looks counts how often a watch of a made-up sandbox looks, as watches do.
func looks(w *watching, n *atomic.Int64) {
	for w.pause(watchInterval) {
		resting := w.watch.rest.begun()
		n.Add(1)
		if resting != nil && !await(w, resting) {
			return
		}
	}
}

// TestWatchesRestWhileNothingRuns: not once after the last look at a sandbox that stands
// still, and as ever before and afterwards.
func TestWatchesRestWhileNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		var still atomic.Bool
		w := &Watch{}
		loop := w.newWatching()
		go looks(loop, &n)
		in := func(d time.Duration) int64 {
			before := n.Load()
			time.Sleep(d)
			return n.Load() - before
		}
		if got := in(time.Second); got < 90 {
			t.Errorf("%d looks in a second", got)
		}
		w.Hold(still.Load)
		if got := in(time.Second); got < 90 {
			t.Errorf("%d looks while processes still run", got)
		}
		still.Store(true)
		if got := in(time.Second); got != 1 {
			t.Errorf("%d looks once they do not, want one", got)
		}
		w.Hold(still.Load) // once more
		if got := in(time.Hour); got != 0 {
			t.Errorf("%d looks at what is paused", got)
		}
		w.Resume()
		w.Resume()
		if got := in(time.Second); got < 90 {
			t.Errorf("%d looks after it", got)
		}
		w.Hold(still.Load)
		time.Sleep(time.Second)
		loop.stop() // ends a watch that rests
	})
}
