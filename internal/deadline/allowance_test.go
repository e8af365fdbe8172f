package deadline

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestADeadlineIsPutOffForSoLongInAll: waits that overlap count once, and when the allowance is
// used up time counts again.
func TestADeadlineIsPutOffForSoLongInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(10 * time.Hour)
		a := d.Allow(25 * time.Second)
		begun := time.Now()
		check := func(want time.Duration) {
			t.Helper()
			synctest.Wait()
			resume := d.Pause()
			paused := d.left - (10*time.Hour - time.Since(begun))
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
		d.Stop()
	})
}
