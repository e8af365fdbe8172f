package history

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// TestLooks for what is new, over a day's change, of a process that begins meanwhile, and of a line
// that comes in two parts.
func TestLooks(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	one, two := c.journal(r, "one"), c.journal(r, "two")
	writeRun(t, one, "before")

	f := follower{record: r, at: map[string]int64{}}
	must(t, f.skip())
	look := func(want ...string) {
		t.Helper()
		entries, err := f.look()
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Run+" "+string(e.Kind))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	look()
	run := one.Begin("first", "")
	must(t, run.Append(record.RunStart{}))
	look("first run.start")

	must(t, two.Begin("second", "").Append(record.RunStart{})) // in a new file
	must(t, run.Append(record.Limit{Name: "time"}))
	look("second run.start", "first limit")

	c.at = noon.AddDate(0, 0, 1)
	must(t, run.Append(record.RunEnd{Status: "success"}))
	look("first run.end")

	line := `{"v":1,"seq":2,"prev":"` + strings.Repeat("0", 64) + `","time":"2026-11-28T12:00:00.000000000Z","kind":"limit","run":"third","name":"time"}` + "\n"
	file, err := os.OpenFile(r.path(slices.Max(allFiles(t, r))), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer file.Close()
	for _, part := range []string{line[:40], line[40:]} {
		look()
		_, err := file.WriteString(part)
		must(t, err)
	}
	look("third limit")
	must(t, errors.Join(one.Close(), two.Close()))
	look()
}

func TestFollow(t *testing.T) {
	r := Open(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	journal := record.Open(record.Options{Dir: r.dir})
	defer journal.Close()
	writing := make(chan struct{})
	go func() { // until it is followed, it writes into a past that is not yielded
		defer close(writing)
		for ctx.Err() == nil {
			if err := journal.Begin("aaaaaaaaaa", "").Append(record.RunStart{}); err != nil {
				t.Error(err)
			}
			<-time.After(time.Millisecond)
		}
	}()
	for e, err := range r.Follow(ctx, time.Millisecond) {
		if err != nil || e.Run != "aaaaaaaaaa" {
			t.Error(e, err)
		}
		cancel() // and then it ends
	}
	<-writing
}
