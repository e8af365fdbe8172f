package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAClockStandsStillForSoLongInAll: waits that overlap count once, and when the allowance is
// used up the clock goes on.
func TestAClockStandsStillForSoLongInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(10 * time.Hour)
		a := c.Allow(25 * time.Second)
		begun := time.Now()
		check := func(want time.Duration) {
			t.Helper()
			synctest.Wait()
			resume := c.Pause()
			paused := c.left - (10*time.Hour - time.Since(begun))
			resume()
			if paused != want {
				t.Errorf("paused for %v, want %v", paused, want)
			}
		}
		first := a.Wait()
		time.Sleep(5 * time.Second)
		second := a.Wait()
		time.Sleep(5 * time.Second)
		first()
		time.Sleep(5 * time.Second)
		second()
		check(15 * time.Second)
		time.Sleep(time.Hour)
		third := a.Wait()
		time.Sleep(time.Hour)
		check(25 * time.Second)
		third()
		a.Wait()()
		check(25 * time.Second)
		c.Stop()
	})
}
