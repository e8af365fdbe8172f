package gate

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressOfAShortCallIsPassedOn whole, and that of a busy one a few times a second.
func TestProgressOfAShortCallIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passed := 0
		p := callProgress{report: func(string) { passed++ }}
		report := p.of("s", "t")
		for i := range progressFirst {
			report(float64(i), progressFirst, "")
		}
		if passed != progressFirst {
			t.Errorf("%d of the first %d reports were passed on", passed, progressFirst)
		}
		passed = 0
		for range 2000 {
			time.Sleep(time.Millisecond)
			report(1, 2, "")
		}
		if passed != 10 {
			t.Errorf("%d of 2000 reports in two seconds were passed on, want 10", passed)
		}
	})
}

func TestProgressText(t *testing.T) {
	for want, got := range map[string]string{
		"s/t: 1 of 2 half":   progressText("s", "t", 1, 2, "half"),
		"s/t: 0.25 of 1":     progressText("s", "t", 0.25, 1, ""),
		"s/t: 7":             progressText("s", "t", 7, 0, ""),
		"s/t: still at work": progressText("s", "t", 7, 0, "still at\n work"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
