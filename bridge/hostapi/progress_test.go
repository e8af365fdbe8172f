package hostapi

import "testing"

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
