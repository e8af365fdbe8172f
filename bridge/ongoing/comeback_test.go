package ongoing

import "testing"

// TestNoCallThatWasDoneIsLeftOut: a model that repeats a run goes by what is said of it.
func TestNoCallThatWasDoneIsLeftOut(t *testing.T) {
	seven := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, tt := range []struct {
		effects []string
		more    int
		want    string
	}{
		{nil, 0, "calls done: none that changed anything"},
		{seven[:5], 0, "calls done: a; b; c; d; e"},
		{seven[:6], 0, "calls done: b; c; d; e; f; and 1 other call"},
		{seven, 10, "calls done: c; d; e; f; g; and 12 other calls"},
	} {
		if got := callsDone(tt.effects, tt.more); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
