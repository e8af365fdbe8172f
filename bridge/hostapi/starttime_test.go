package hostapi

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStartsPauseARunForSoLongInAll: waits that overlap count once, and when the time for
// them is used up the run's own time goes on.
func TestStartsPauseARunForSoLongInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused time.Duration
		s := startTime{left: 25 * time.Second, pause: func() func() {
			begun := time.Now()
			return func() { paused += time.Since(begun) }
		}}
		check := func(want time.Duration) {
			t.Helper()
			synctest.Wait()
			if paused != want {
				t.Errorf("paused for %v, want %v", paused, want)
			}
		}
		first := s.wait()
		time.Sleep(5 * time.Second)
		second := s.wait()
		time.Sleep(5 * time.Second)
		first()
		check(0)
		second()
		check(10 * time.Second)
		time.Sleep(time.Hour)
		third := s.wait()
		time.Sleep(time.Hour)
		check(25 * time.Second)
		third()
		s.wait()()
		check(25 * time.Second)
	})
}
