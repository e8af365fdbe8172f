package text

import "testing"

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"512m": 512 << 20, "1GiB": 1 << 30, "1gb": 1 << 30, "1.5k": 1536, "2T": 2 << 40, "100": 100,
		"": 0, "0": 0, "-1m": 0, "NaN": 0, "inf": 0, "1x": 0, "m": 0, "9999999t": 0, "1mm": 0,
	} {
		if got, err := ParseSize(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
}
