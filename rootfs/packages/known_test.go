package packages

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// TestPackagesThatAreHereAreNotWaitedFor, though another process makes the same request anew,
// and neither is the answer that they are refused.
func TestPackagesThatAreHereAreNotWaitedFor(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	made, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := openStore(t, s.dir).cache.Wait(t.Context(), requestLock(r.key()), state.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r.MaxTime = time.Nanosecond
	if set, err := s.Ensure(t.Context(), r, nil); err != nil || set.Dir != made.Dir {
		t.Errorf("got %+v, %v", set, err)
	}
	denied := errors.New("denied")
	r.Check = func(string, string) error { return denied }
	if set, err := s.Ensure(t.Context(), r, nil); !errors.Is(err, denied) {
		t.Errorf("denied since: got %+v, %v", set, err)
	}
}

// TestDamagedRecordsOfRequestsAreMadeAgain: half of one may have other versions.
func TestDamagedRecordsOfRequestsAreMadeAgain(t *testing.T) {
	for name, damage := range map[string]func(record map[string]any){
		"its time is none":     func(record map[string]any) { record["created"] = "x" },
		"its lock is none":     func(record map[string]any) { record["lock"] = "x = 1" },
		"its lock is not TOML": func(record map[string]any) { record["lock"] = "= 1" },
		"it has no lock":       func(record map[string]any) { delete(record, "lock") },
	} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		r := x.request("a")
		if _, err := s.Ensure(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		file := s.knownFile(r.key())
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal(content, &record); err != nil {
			t.Fatal(err)
		}
		damage(record)
		damaged, err := json.Marshal(record)
		if err = errors.Join(err, os.WriteFile(file, damaged, 0o600)); err != nil {
			t.Fatal(err)
		}
		if s.Has(r) {
			t.Errorf("%s: it is used", name)
		}
		if _, err := s.Ensure(t.Context(), r, nil); err != nil || x.solved != 2 || !s.Has(r) {
			t.Errorf("%s: %v, resolved %d times", name, err, x.solved)
		}
	}
}

// TestAnotherCutoffIsAnotherRequest: later versions are not for a script that excludes them.
func TestAnotherCutoffIsAnotherRequest(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	for i, before := range []time.Time{{}, time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2021, 1, 2, 0, 0, 0, 0, time.UTC)} {
		if r.Before = before; s.Has(r) {
			t.Errorf("%s: that of another cutoff counts", before)
		}
		for range 2 {
			if _, err := s.Ensure(t.Context(), r, nil); err != nil || x.solved != i+1 {
				t.Errorf("%s: %v, resolved %d times", before, err, x.solved)
			}
		}
	}
}

// TestWhatARequestStartedEndsWithIt: nothing of a sandbox goes on.
func TestWhatARequestStartedEndsWithIt(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	var started []context.Context
	r.Run = func(ctx context.Context, c Command) (Output, error) {
		if c.Input != nil {
			started = append(started, ctx)
		}
		return x.run(ctx, c)
	}
	if _, err := s.Ensure(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if len(started) != 1 || started[0].Err() == nil {
		t.Errorf("%d resolvers, or one that goes on", len(started))
	}
}
