package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// unreadTimeout is how long an answer keeps its room if the code does not read it. A
// run is paused for minutes while the user is asked, and others need the room.
const unreadTimeout = time.Second

// reply sends an answer or an error. It takes room until the code has read it.
func (r *exchange) reply(id int64, result json.RawMessage, err error) error {
	h := r.account.hold(id, result, err)
	defer func() { h.release() }()
	if end, ok := r.tryWriting(unreadTimeout); ok {
		defer end()
	} else {
		r.account.spill(&h)
		defer r.beginWriting()()
	}
	return r.writeReply(&h)
}

// replyMade makes an answer and sends it. It makes it only when the connection is
// free, so each run has at most one that waits to be read.
func (r *exchange) replyMade(ctx context.Context, id int64, result func() (json.RawMessage, error), release func()) error {
	defer r.beginWriting()()
	h := r.makeAnswer(ctx, id, result)
	release()
	defer func() { h.release() }()
	return r.writeReply(&h)
}

// makeAnswer makes an answer when it is the run's turn, unless the run has ended.
func (r *exchange) makeAnswer(ctx context.Context, id int64, result func() (json.RawMessage, error)) held {
	if err := r.account.makers.Acquire(ctx, 1); err != nil {
		return r.account.hold(id, nil, err)
	}
	defer r.account.makers.Release(1)
	var made json.RawMessage
	err := contain.Call("making an answer for code", func() (err error) {
		made, err = result()
		return err
	})
	return r.account.hold(id, made, err)
}

// writeReply sends a reply, in one write if it is short. If the code does not read it soon,
// what is left of it waits in a file.
func (r *exchange) writeReply(h *held) error {
	switch {
	case h.file != nil:
	case h.size() <= freeSize:
		_, err := r.conn.Write(slices.Concat(h.parts...))
		return err
	default:
		if read, err := r.writeSoon(&h.parts); read || err != nil {
			return err
		}
		r.account.spill(h)
	}
	if h.file == nil {
		_, err := h.parts.WriteTo(r.conn)
		return err
	}
	_, err := io.Copy(r.conn, h.file)
	return err
}

// writeSoon writes parts if the code reads them soon, and reports whether it did. What
// it did not read is left in parts.
func (r *exchange) writeSoon(parts *net.Buffers) (read bool, err error) {
	r.limitWrite(time.Now().Add(unreadTimeout))
	_, err = parts.WriteTo(r.conn)
	r.limitWrite(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) && !r.isLate() {
		return false, nil
	}
	return true, err
}

// limitWrite sets when writing an answer fails; it also does when endWritingAt says so.
func (r *exchange) limitWrite(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.IsZero() || !r.late.IsZero() && r.late.Before(at) {
		at = r.late
	}
	_ = r.conn.SetWriteDeadline(at)
}

// endWritingAt sets when writing fails for good.
func (r *exchange) endWritingAt(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = at
	_ = r.conn.SetWriteDeadline(at)
}

// isLate reports whether writing has failed for good.
func (r *exchange) isLate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.late.IsZero() && !time.Now().Before(r.late)
}
