package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// errClosed is the error of an entry that comes too late.
var errClosed = errors.New("the record is closed")

// Append writes an entry that is of no run, such as a Pin. Errors are those of Run.Append.
func (j *Journal) Append(e Entry) error {
	if j == nil {
		return nil
	}
	return j.append(nil, e)
}

// append makes an entry ready, and then writes it under the lock.
func (j *Journal) append(run *Run, e Entry) error {
	d := &draft{run: run, keeps: j.o.Keep, most: j.o.MaxValue, hider: j.hider, o: &j.o}
	body, err := encode(e, d)
	h := Header{Kind: e.Kind()}
	if run != nil {
		h.Run, h.Parent = run.id, run.parent
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		err = j.write(h, body, d.values)
	}
	if err != nil {
		j.gap.Err = err
		return fmt.Errorf("recording %s: %w", h.Kind, err)
	}
	return nil
}

// write appends an entry and its values, and before it one that says what is missing. The caller
// has the lock.
func (j *Journal) write(h Header, body []byte, values [][]byte) (err error) {
	h.Time = j.o.Now().UTC()
	release, err := j.ready(h.Time)
	if err == nil {
		defer release()
		err = j.segment.entries.append(h, body)
	}
	if err != nil {
		j.pending.Lost++
		j.gap.Entries++
		return err
	}
	if len(values) > 0 {
		if err = j.segment.appendValues(h.Run, j.segment.entries.seq, values); err != nil {
			j.pending.Values += len(values)
			j.gap.Values += len(values)
			j.pending.Error = err.Error()
		}
	}
	if j.segment.begun {
		j.segment.begun = false
		j.background("looking after old records", func() error { return folder(j.o.Dir).tidy(&j.o, h.Time) })
	}
	return err
}

// ready has the file of the day opened, locked if it is shared, and whole.
func (j *Journal) ready(now time.Time) (release func(), err error) {
	if j.closed {
		return nil, errClosed
	}
	if err := j.turn(now); err != nil {
		return nil, err
	}
	if release, err = j.segment.lock(now); err != nil {
		return nil, err
	}
	entries := j.segment.entries
	if entries.torn() == 0 && j.pending == (Torn{}) {
		return release, nil
	}
	missing := j.pending
	if entries.torn() > 0 {
		missing.Lost = max(missing.Lost, 1)
	}
	if err := entries.mend(missing, now); err != nil {
		release()
		return nil, err
	}
	j.pending = Torn{}
	return release, nil
}

// turn opens the file of the day. A clock that goes back to the day before changes nothing.
func (j *Journal) turn(now time.Time) error {
	day := now.Unix() / int64((24 * time.Hour).Seconds())
	if j.segment != nil && day <= j.day {
		return nil
	}
	next, err := openSegment(&j.o, now)
	if err != nil {
		return err
	}
	if before := j.segment; before != nil {
		j.background("closing the record of a day", func() error {
			return before.close(now, Torn{}) // the file of today tells what is missing
		})
	}
	j.segment, j.day = next, day
	return nil
}

func (j *Journal) background(work string, f func() error) {
	j.later.Go(func() {
		defer contain.Recover(work, nil)
		if err := f(); err != nil {
			j.o.Log.Warn("the record is not in order", "while", work, "error", err)
		}
	})
}

// Ready returns why nothing can be recorded now, as for a caller that begins no run then. After a
// failure it tries whether the next entry could be written. It cannot tell that the disk is full
// before the first entry that is too long for it: that is the error of the RunStart.
func (j *Journal) Ready() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	release, err := j.ready(j.o.Now().UTC())
	if err == nil {
		release()
	}
	return err
}

// Incomplete returns what could not be written since Open.
func (j *Journal) Incomplete() Gap {
	if j == nil {
		return Gap{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.gap
}

// Close notes that the journal's file is complete. Entries that come later are refused.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	s, closed, missing := j.segment, j.closed, j.pending
	j.closed = true
	j.mu.Unlock()
	j.later.Wait()
	if s == nil || closed {
		return nil
	}
	return s.close(j.o.Now().UTC(), missing)
}
