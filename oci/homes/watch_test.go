package homes

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/oci/host"
)

// TestWatchMeasuresWhenSpaceIsLost, and at times without that, since others may have freed it.
func TestWatchMeasuresWhenSpaceIsLost(t *testing.T) {
	var free, size int64 = 1000, 20
	measured := 0
	w := watch{limit: 100, skipped: maxSkipped, free: func() int64 { return free }, measure: func() (Use, error) {
		measured++
		return Use{Bytes: size}, nil
	}}
	step := func(what string, wantOver bool, want int) {
		t.Helper()
		over, err := w.step()
		if over != wantOver || err != nil || measured != want {
			t.Errorf("%s: over %t, %v, measured %d times, want %d", what, over, err, measured, want)
		}
	}
	step("first", false, 1)
	free -= 39
	step("less than half of 80 is lost", false, 1)
	free--
	step("half is lost", false, 2)
	size = 101
	for range maxSkipped {
		step("nothing is lost", false, 2)
	}
	step("after a while", true, 3)
	w.limit, w.last = 1000, Use{}
	w.measure = func() (Use, error) { return Use{More: true}, nil }
	free = 0
	if over, err := w.step(); !over || err != nil {
		t.Errorf("too many files: %t, %v", over, err)
	}
}

func TestWatchFailsOnlyInTheEnd(t *testing.T) {
	failing := errors.New("no processes")
	w := watch{skipped: maxSkipped, free: func() int64 { return 0 }, measure: func() (Use, error) { return Use{}, failing }}
	for i := range maxFailed {
		over, err := w.step()
		if last := i == maxFailed-1; over || errors.Is(err, failing) != last {
			t.Errorf("failure %d: %t, %v", i, over, err)
		}
	}
}

// TestWatchReturnsOnceItIsTooLarge, or with its context.
func TestWatchReturnsOnceItIsTooLarge(t *testing.T) {
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, h)
	dir := s.home(t, "a").Dir
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("the server has ended"))
		defer cancel()
		if _, err := s.Watch(ctx, "a", 1<<20, time.Minute); err == nil || err.Error() != "the server has ended" || time.Since(begin) != time.Hour {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
	if h.EUID == 0 {
		if err := os.WriteFile(dir+"/large", make([]byte, 2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if use, err := s.Watch(t.Context(), "a", 1<<20, time.Hour); err != nil || !use.More && use.Bytes <= 1<<20 {
			t.Errorf("got %+v, %v", use, err)
		}
	}
}
