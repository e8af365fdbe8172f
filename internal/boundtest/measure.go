package boundtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// measure finds what one shape costs.
func measure(p Parser, row Row, s Shape) (r report) {
	if p.Before != nil {
		p.Before()
	}
	slow := slowness()
	limit := min(cmp.Or(row.Bytes, largest), largest)
	limitProcess(2*row.peak()+8*largest+512<<20, slow)
	once := func(n int) size {
		text := s.Make(n)
		took, peak, err := cost(p, text)
		if row.Room > 0 {
			if len(text) <= limit { // no more comes to it
				r.Peak = max(r.Peak, peak)
			}
			r.Over = max(r.Over, peak-row.Room*len(text)-garbage)
		}
		found := size{Bytes: len(text), Took: time.Duration(float64(took) / slow)}
		if err != nil {
			found.Error = err.Error()[:min(300, len(err.Error()))]
		}
		return found
	}
	best := func(n int, good time.Duration) size {
		found := once(n)
		for i := 1; i < tries && found.Took > good; i++ {
			if again := once(n); again.Took < found.Took {
				found = again
			}
		}
		return found
	}
	n := min(4<<10, limit)
	for r.Small = once(n); r.Small.Took < enough && n < limit; r.Small = once(n) {
		n = min(4*n, limit)
	}
	r.Large = best(min(10*n, 2*largest), mostGrowth*max(r.Small.Took, enough))
	var whole time.Duration
	if row.Room == 0 {
		r.Peak, whole = mostInUse(p, s, limit)
	}
	if p.Parse != nil {
		r.Whole = best(limit, row.whole())
		for n, last := limit/2, r.Whole; last.Error != "" && n >= limit/16; n /= 2 { // what has too many parts is refused, and less of it is slower
			if last = best(n, row.whole()); last.Took > r.Whole.Took {
				r.Whole = last
			}
		}
		return r
	}
	if row.Room > 0 && row.Bytes > limit && s.Name == cmp.Or(p.Worst, p.Shapes[0].Name) {
		limit = row.Bytes // for its memory
		once(limit)
		limit = largest
	}
	for range tries {
		ended := func() time.Duration { return endAfter(p, s) }
		if p.ParseContext != nil {
			ended = func() time.Duration { return endParsing(p, s, limit, whole) }
		}
		if r.Ended = time.Duration(float64(ended()) / slow); r.Ended <= mostAtOnce {
			break
		}
	}
	return r
}

// garbage is memory that one call may take however short its input is.
const garbage = 24 << 20

// mostInUse returns the most memory that a call has in use at one moment, and about how long
// the largest input takes. The collector runs all the time: what garbage may lie around is
// bounded for the whole process, by Go's memory limit.
func mostInUse(p Parser, s Shape, limit int) (peak int, whole time.Duration) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	refused := true
	for n := limit; refused && n >= limit/16; n /= 2 { // what has too many parts is refused, and less of it may take more
		from := time.Now()
		_, used, err := cost(p, s.Make(n))
		peak, whole, refused = max(peak, used), max(whole, time.Since(from)), err != nil
	}
	return peak, whole * 6 / 10 // the rest is the collector's
}

// cost feeds a text to the parser.
func cost(p Parser, text []byte) (took time.Duration, peak int, err error) {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak is measured from here
	before, from := status("VmRSS"), processorTime()
	switch {
	case p.Parse != nil:
		err = p.Parse(text)
	case p.ParseContext != nil:
		err = p.ParseContext(context.Background(), text)
	default:
		err = p.Read(context.Background(), bytes.NewReader(text))
	}
	return processorTime() - from, max(0, status("VmHWM")-before), err
}

// endAfter returns how long a reader of a stream without end goes on after its context.
func endAfter(p Parser, s Shape) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	text := s.Make(1 << 20)
	stream := &endless{text: text, after: 4 << 20, reached: make(chan struct{})}
	done := make(chan time.Duration, 1)
	go func() {
		_ = p.Read(ctx, stream)
		done <- processorTime()
	}()
	select {
	case <-done:
		return 0
	case <-stream.reached:
	case <-time.After(time.Second):
	}
	return ends(cancel, done)
}

// endParsing returns how long at most a call goes on that is cancelled at its beginning, in
// its middle and near its end. It takes up to whole, or an unknown time if that is 0.
func endParsing(p Parser, s Shape, limit int, whole time.Duration) (longest time.Duration) {
	text := s.Make(limit)
	if whole == 0 {
		from := time.Now()
		_ = p.ParseContext(context.Background(), text)
		whole = time.Since(from)
	}
	for _, part := range []time.Duration{0, 2, 5, 8} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan time.Duration, 1)
		go func() {
			_ = p.ParseContext(ctx, text)
			done <- processorTime()
		}()
		time.Sleep(whole * part / 10)
		longest = max(longest, ends(cancel, done))
	}
	return longest
}

// ends returns how long a call goes on that is cancelled: its processor time, which a busy
// machine does not make longer, unless it seems to sleep.
func ends(cancel func(), done <-chan time.Duration) time.Duration {
	const sleeps = 5 * time.Second
	from, start, waited := processorTime(), time.Now(), runDelay()
	cancel()
	took := <-done - from
	if whole := time.Since(start) - (runDelay() - waited); whole > sleeps {
		return whole
	}
	return took
}

// endless is a text again and again.
type endless struct {
	text    []byte
	at      int
	after   int // bytes, then reached is closed
	reached chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	if e.after > 0 && e.after <= n {
		close(e.reached)
	}
	e.after -= n
	return n, nil
}

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runDelay returns how long the threads of this process have waited for a processor
// (schedstats in the kernel's documentation), 0 if the kernel does not tell.
func runDelay() (all time.Duration) {
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64)
			all += time.Duration(ns)
		}
	}
	return all
}

// status returns a number of bytes of /proc/self/status.
func status(name string) int {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, _ := strconv.Atoi(field)
	return kib << 10
}

// limitProcess ends a process that takes far more than the row's number, and one that
// does not end.
func limitProcess(more int, slow float64) {
	most := uint64(status("VmSize") + more)
	_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
	seconds := uint64(60 * slow)
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds})
}

// usualWork takes 10 ms to check on the machine on which the bounds of time were set.
var usualWork = []byte("[" + strings.Repeat(`{"id": 1, "name": "row", "price": 0.25, "tags": ["a", "b"]},`, 40_000) + "1]")

// slowness is how much slower this machine is now.
func slowness() float64 {
	least := time.Hour
	for range tries {
		from := processorTime()
		json.Valid(usualWork)
		least = min(least, processorTime()-from)
	}
	return max(1, float64(least)/float64(10*time.Millisecond))
}
