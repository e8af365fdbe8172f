package runner

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
)

// bulk is what large texts are made of.
var bulk = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("x"), maxFrame) })

// textOf is a JSON text of n bytes.
func textOf(n int) json.RawMessage { return json.RawMessage(`"` + string(bulk()[:n-2]) + `"`) }

// callWith sends a call with parameters of n bytes. It may wait for room, and fails
// once the run has ended.
func (f *fakeRunner) callWith(id int64, n int) {
	head := fmt.Appendf(make([]byte, 4), `{"type":"call","id":%d,"method":"m","params":{"x":"`, id)
	tail := []byte(`"}}`)
	binary.BigEndian.PutUint32(head, uint32(len(head)-4+n-8+len(tail)))
	for _, part := range [][]byte{head, bulk()[:n-8], tail} {
		if _, err := f.own.Write(part); err != nil {
			return
		}
	}
}

// start begins a run with a budget, and returns a function that waits for its end.
func (f *fakeRunner) start(ctx context.Context, b *Budget, timeout time.Duration, h Host) (wait func() error) {
	ended := make(chan error, 1)
	go func() {
		_, err := NewConn(f, "", b).Run(ctx, Start{Deadline: deadline.New(timeout)}, anyGate, h)
		ended <- err
	}()
	f.send(frame{Type: "ready"})
	f.receive()
	return func() error { return <-ended }
}

// answered reports whether a reply comes before all else has come to rest.
func (f *fakeRunner) answered() func() bool {
	var came atomic.Bool
	go func() {
		f.receive()
		came.Store(true)
	}()
	return func() bool {
		synctest.Wait()
		return came.Load()
	}
}

// A door is a host whose calls wait until it is opened.
type door chan struct{}

func (g door) Answer(context.Context, Call) (Answer, error) {
	<-g
	return Answer{JSON: json.RawMessage("1")}, nil
}

var atOnce = hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage("1"), nil
})

// TestOneRunLeavesRoomForAnother, though it sends large frames without an end and
// its calls take long.
func TestOneRunLeavesRoomForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, busy := NewBudget(""), make(door)
		hog, other := newFakeRunner(t), newFakeRunner(t)
		hogEnds := hog.start(t.Context(), b, time.Hour, busy)
		otherEnds := other.start(t.Context(), b, time.Hour, atOnce)
		go func() {
			for id := range int64(20) {
				hog.callWith(id, 10<<20)
			}
		}()
		synctest.Wait()
		for _, size := range []int{100, 100 << 10, maxFrame - 1<<10} {
			came := other.answered()
			other.callWith(1, size)
			if !came() {
				t.Errorf("a call of %d bytes was not answered", size)
			}
		}
		close(busy)
		hog.exit()
		other.exit()
		if err := errors.Join(hogEnds(), otherEnds()); err != nil {
			t.Error(err)
		}
	})
}

// TestFullBudgetLeavesSmallFramesAlone: large ones wait for their turn, and those
// that every run sends do not.
func TestFullBudgetLeavesSmallFramesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, busy := NewBudget(""), make(door)
		var hogs []*fakeRunner
		var ends []func() error
		for range 4 {
			hog := newFakeRunner(t)
			hogs, ends = append(hogs, hog), append(ends, hog.start(t.Context(), b, time.Hour, busy))
			go hog.callWith(1, maxFrame-1<<10)
		}
		synctest.Wait()
		small, large := newFakeRunner(t), newFakeRunner(t)
		ends = append(ends, small.start(t.Context(), b, time.Hour, atOnce), large.start(t.Context(), b, time.Hour, atOnce))
		largeCame := large.answered()
		go large.callWith(1, 4<<20)
		for id := range int64(100) {
			came := small.answered()
			small.callWith(id, 64<<10)
			if !came() {
				t.Fatal("a small call was not answered")
			}
		}
		if largeCame() {
			t.Error("a large call found room where there was none")
		}
		close(busy)
		for _, hog := range hogs {
			hog.receive()
		}
		if !largeCame() {
			t.Error("a large call was not answered when there was room again")
		}
		for _, f := range append(hogs, small, large) {
			f.exit()
		}
		for _, end := range ends {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestShortFramesWaitForTheirOwnRunOnly: more of them than a run has room for go on
// when its own calls end, though other runs keep all else.
func TestShortFramesWaitForTheirOwnRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, busy := NewBudget(""), make(door)
		if !b.shared.TryAcquire(maxHeld) {
			t.Fatal("the budget is not empty")
		}
		const calls = 3 * ownHeld / (64 << 10)
		f := newFakeRunner(t)
		end := f.start(t.Context(), b, time.Hour, busy)
		go func() {
			for id := range int64(calls) {
				f.callWith(id, 60<<10)
			}
		}()
		synctest.Wait()
		close(busy)
		for range calls {
			f.receive()
		}
		f.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnfinishedFrameGivesItsRoomBack: the run that begins a frame and does not go
// on with it ends.
func TestUnfinishedFrameGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("")
		var ends []func() error
		for range 2 {
			hog := newFakeRunner(t)
			ends = append(ends, hog.start(t.Context(), b, time.Hour, atOnce))
			go func() { _, _ = hog.own.Write(append(binary.BigEndian.AppendUint32(nil, maxFrame), '{')) }()
		}
		synctest.Wait()
		other := newFakeRunner(t)
		end := other.start(t.Context(), b, time.Hour, atOnce)
		came, begun := other.answered(), time.Now()
		other.callWith(1, maxFrame-1<<10)
		if waited := time.Since(begun); !came() || waited > frameTime {
			t.Errorf("another run was answered: %v, after %s", came(), waited)
		}
		for _, end := range ends {
			if err := end(); !errors.Is(err, ErrProtocol) {
				t.Errorf("it ended with %v", err)
			}
		}
		other.exit()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitingForRoomEnds with the run's time, with its sandbox and with its context.
func TestWaitingForRoomEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("")
		if !b.shared.TryAcquire(maxHeld) {
			t.Fatal("the budget is not empty")
		}
		ctx, cancel := context.WithCancel(t.Context())
		timely, gone, cancelled := newFakeRunner(t), newFakeRunner(t), newFakeRunner(t)
		ends := []func() error{timely.start(t.Context(), b, time.Minute, atOnce), gone.start(t.Context(), b, time.Hour, atOnce), cancelled.start(ctx, b, time.Hour, atOnce)}
		for _, f := range []*fakeRunner{timely, gone, cancelled} {
			go f.callWith(1, 4<<20)
		}
		synctest.Wait()
		gone.exit()
		cancel()
		for i, want := range []error{ErrTimeout, nil, context.Canceled} {
			if err := ends[i](); !errors.Is(err, want) {
				t.Errorf("run %d ended with %v, want %v", i, err, want)
			}
		}
		b.shared.Release(maxHeld)
		if !b.shared.TryAcquire(maxHeld) {
			t.Error("room was not given back")
		}
	})
}

// lists is a host that makes lists, and counts them.
type lists struct{ made atomic.Int64 }

func (l *lists) Answer(context.Context, Call) (Answer, error) {
	return Answer{Make: func() (json.RawMessage, error) {
		l.made.Add(1)
		return textOf(20 << 20), nil
	}}, nil
}

// TestListsThatNobodyReadsAreNotMade, and they do not keep the run from ending when
// its time is up.
func TestListsThatNobodyReadsAreNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, host := newFakeRunner(t), &lists{}
		begun := time.Now()
		end := f.start(t.Context(), NewBudget(""), 10*time.Second, host)
		for id := range int64(maxCalls) {
			f.callWith(id, 100)
		}
		if err := end(); !errors.Is(err, ErrTimeout) || time.Since(begun) > 11*time.Second {
			t.Errorf("ended after %s with %v", time.Since(begun), err)
		}
		if n := host.made.Load(); n != 1 {
			t.Errorf("%d lists were made", n)
		}
	})
}

// TestAnswersThatNobodyReadsWaitInFiles, and come whole when they are read.
func TestAnswersThatNobodyReadsWaitInFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	synctest.Test(t, func(t *testing.T) {
		const calls, size = 200, 1 << 20
		dir := t.TempDir()
		b, f := NewBudget(dir), newFakeRunner(t)
		end := f.start(t.Context(), b, time.Hour, hostFunc(func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
			return textOf(size), nil
		}))
		for id := range int64(calls) {
			f.callWith(id, 100)
		}
		synctest.Wait()
		if !b.shared.TryAcquire(maxHeld - maxRunHeld) {
			t.Error("the answers take more than a run may hold")
		}
		b.shared.Release(maxHeld - maxRunHeld)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files have names: %v, %v", left, err)
		}
		seen := map[int64]bool{}
		for range calls {
			m := f.receive()
			seen[m.ID] = true
			if len(m.Result) != size {
				t.Fatalf("answer %d has %d bytes, error %v", m.ID, len(m.Result), m.Error)
			}
		}
		if len(seen) != calls {
			t.Errorf("%d of %d answers came", len(seen), calls)
		}
		f.exit()
		if err := end(); err != nil || !b.shared.TryAcquire(maxHeld) {
			t.Errorf("ended with %v, or room was not given back", err)
		}
	})
}

// TestTooManyAnswersThatNobodyReads become errors.
func TestTooManyAnswersThatNobodyReads(t *testing.T) {
	a := NewBudget("").newAccount()
	kept := 0
	for range 100 {
		h := a.hold(1, textOf(1<<20), nil)
		t.Cleanup(h.release)
		if strings.Contains(string(h.parts[0]), `"result"`) {
			kept++
		} else if !strings.Contains(string(h.parts[1]), "fewer calls at once") {
			t.Fatalf("the error is %s", h.parts[1])
		}
	}
	if want := (maxRunHeld + ownHeld) >> 20; kept != want {
		t.Errorf("%d answers were kept in memory, want %d", kept, want)
	}
}

// TestRunsOfAllSizesEnd: many runs at once, whose frames and answers are large and
// small, wait for each other and come to their end.
func TestRunsOfAllSizesEnd(t *testing.T) {
	const runs, calls = 6, 15
	sizes := []int{10, 5<<10 + 1, 200 << 10, 1<<20 + 1, 3 << 20}
	b := NewBudget(t.TempDir())
	const taken = maxHeld - 4<<20 // what is left is never enough
	if !b.shared.TryAcquire(taken) {
		t.Fatal("the budget is not empty")
	}
	var all sync.WaitGroup
	for n := range runs {
		all.Go(func() {
			f := newFakeRunner(t)
			end := f.start(t.Context(), b, time.Hour, echo{})
			all.Go(func() {
				for i := range calls {
					f.callWith(int64(i), sizes[(n+i)%len(sizes)])
				}
			})
			for range calls {
				if m := f.receive(); m.Error != nil || len(m.Result) != sizes[(n+int(m.ID))%len(sizes)] {
					t.Errorf("answer %d has %d bytes, %v", m.ID, len(m.Result), m.Error)
				}
			}
			f.exit()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if b.shared.Release(taken); !b.shared.TryAcquire(maxHeld) {
		t.Error("room was not given back")
	}
}

// echo answers with the parameters, in either way.
type echo struct{}

func (echo) Answer(_ context.Context, c Call) (Answer, error) {
	params := c.Raw
	if len(params)%2 == 0 {
		return Answer{Make: func() (json.RawMessage, error) { return params, nil }}, nil
	}
	return Answer{JSON: bytes.Clone(params)}, nil
}
