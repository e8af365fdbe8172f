package text

import (
	"testing"
	"time"
)

func TestDurationHasNoZeroUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 45 * time.Second: "45s", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		time.Hour: "1h", 168 * time.Hour: "168h", time.Hour + 10*time.Second: "1h0m10s", 90 * time.Minute: "1h30m", 50 * time.Millisecond: "50ms",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
	}
}
