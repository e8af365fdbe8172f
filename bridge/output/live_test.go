package output

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLiveOutputIsBoundedInRateAndLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []string
		l := &liveOutput{tell: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, text)
		}}
		write := func(text string) {
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("took %d of %d bytes: %v", n, len(text), err)
			}
		}
		write("first\nsec")
		write("ond\n\n  \nno end")
		time.Sleep(LiveInterval + time.Millisecond)
		write(strings.Repeat("é", 1000) + "\x1b[31m\n")
		for n := range 10_000 {
			write(fmt.Sprintf("line %d\n", n))
		}
		time.Sleep(10 * LiveInterval)
		write("10%\r20%\r")
		time.Sleep(2 * LiveInterval)
		synctest.Wait()
		want := []string{
			"first\nsecond",
			"[9996 lines before]\nline 9995\nline 9996\nline 9997\nline 9998\nline 9999",
			"10%\n20%",
		}
		if strings.Join(heard, "\n--\n") != strings.Join(want, "\n--\n") {
			t.Errorf("heard %q\nwant  %q", heard, want)
		}
		write(strings.Repeat("x", 10_000) + "\n")
		time.Sleep(2 * LiveInterval)
		synctest.Wait()
		if last := heard[len(heard)-1]; last != strings.Repeat("x", maxLiveLine)+"…" {
			t.Errorf("a long line is reported with %d bytes", len(last))
		}
	})
}

// TestFollowPassesEverythingOn, also if only the lines are wanted.
func TestFollowPassesEverythingOn(t *testing.T) {
	for _, out := range []*strings.Builder{nil, {}} {
		synctest.Test(t, func(t *testing.T) {
			heard := make(chan string, 1)
			var to io.Writer
			if out != nil {
				to = out
			}
			if n, err := io.WriteString(Follow(to, func(text string) { heard <- text }), "line\nno end"); n != 11 || err != nil {
				t.Errorf("took %d bytes: %v", n, err)
			}
			if got := <-heard; got != "line" {
				t.Errorf("heard %q", got)
			}
			if out != nil && out.String() != "line\nno end" {
				t.Errorf("passed on %q", out)
			}
		})
	}
}
