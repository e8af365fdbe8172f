package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/deadline"
)

// TestFrameIsFreedBeforeItsAnswerIsRead, also if the answer is made late.
func TestFrameIsFreedBeforeItsAnswerIsRead(t *testing.T) {
	one := func() (json.RawMessage, error) { return json.RawMessage("1"), nil }
	for name, answer := range map[string]Answer{"at once": {JSON: json.RawMessage("1")}, "made": {Make: one}} {
		synctest.Test(t, func(t *testing.T) {
			b, f := NewBudget(""), newFakeRunner(t)
			end := f.start(t.Context(), b, time.Hour, answers(answer))
			f.callWith(1, 10<<20)
			synctest.Wait()
			if !b.shared.TryAcquire(maxHeld) {
				t.Errorf("%s: the frame of an unread answer takes room", name)
			}
			f.receive()
			f.exit()
			if err := end(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestAnswerGivesItsRoomBack when it is read. Without files it comes whole, however late.
func TestAnswerGivesItsRoomBack(t *testing.T) {
	const size = 10 << 20
	made := func() (json.RawMessage, error) { return textOf(size), nil }
	for name, answer := range map[string]Answer{"at once": {JSON: textOf(size)}, "made": {Make: made}} {
		for _, late := range []time.Duration{0, 10 * unreadTimeout} {
			synctest.Test(t, func(t *testing.T) {
				b, f := NewBudget(""), newFakeRunner(t)
				end := f.start(t.Context(), b, time.Hour, answers(answer))
				f.callWith(1, 100)
				time.Sleep(late)
				if m := f.receive(); len(m.Result) != size {
					t.Errorf("%s, read after %s: %d bytes, %v", name, late, len(m.Result), m.Error)
				}
				f.exit()
				if err := end(); err != nil || !b.shared.TryAcquire(maxHeld) {
					t.Errorf("%s, read after %s: it keeps its room, or the run ended with %v", name, late, err)
				}
			})
		}
	}
}

// TestLateAnswersThatNobodyReadsEndASession soon after its run, whenever they come and whether
// they can wait in files.
func TestLateAnswersThatNobodyReadsEndASession(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		for _, after := range []time.Duration{0, unreadTimeout / 2, lateReplies - unreadTimeout/2} {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeRunner(t)
				go func() {
					f.send(frame{Type: "ready"})
					f.receive()
					f.callWith(1, 100)
					f.send(frame{Type: "done", Kept: true})
				}()
				slow := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
					time.Sleep(after)
					return textOf(1 << 20), nil
				})
				begun, start := time.Now(), Start{Session: "s", Deadline: deadline.New(time.Hour)}
				done, err := NewConn(f, "", NewBudget(dir)).Run(t.Context(), start, anyGate, slow)
				if took := time.Since(begun); !errors.Is(err, ErrProtocol) || done.Kept || f.killed == nil || took != lateReplies {
					t.Errorf("an answer after %s: the run ended after %s with %v, kept %v", after, took, err, done.Kept)
				}
			})
		}
	}
}
