package runner

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// unreadTimeout is how long an answer keeps its room if the code does not read it. A
// run stands still for minutes while the user is asked, and others need the room.
const unreadTimeout = time.Second

// reply sends an answer or an error. It takes room until the code has read it.
func (r *exchange) reply(id int64, result json.RawMessage, err error) error {
	h := r.account.hold(result, err)
	defer func() { h.release() }()
	if end, ok := r.tryWriting(unreadTimeout); ok {
		defer end()
	} else {
		r.account.spill(&h)
		defer r.beginWriting()()
	}
	return r.writeReply(id, &h)
}

// replyMade makes an answer and sends it. It makes it only when the connection is
// free, so each run has at most one that waits to be read.
func (r *exchange) replyMade(ctx context.Context, id int64, result func() (json.RawMessage, error), release func()) error {
	defer r.beginWriting()()
	h := r.makeAnswer(ctx, result)
	release()
	defer func() { h.release() }()
	return r.writeReply(id, &h)
}

// makeAnswer makes an answer when it is the run's turn, unless the run has ended.
func (r *exchange) makeAnswer(ctx context.Context, result func() (json.RawMessage, error)) held {
	if err := r.account.makers.Acquire(ctx, 1); err != nil {
		return r.account.hold(nil, err)
	}
	defer r.account.makers.Release(1)
	var made json.RawMessage
	err := contain.Call("making an answer for code", func() (err error) {
		made, err = result()
		return err
	})
	return r.account.hold(made, err)
}

// writeReply sends a reply. Its answer was checked when it was made, and is neither
// encoded again nor, if it is large, copied.
func (r *exchange) writeReply(id int64, h *held) error {
	head := fmt.Appendf(make([]byte, 4), `{"type":"reply","id":%d,"%s":`, id, h.member)
	size := len(head) - 4 + h.size + 1
	if size > math.MaxUint32 {
		return errors.New("encoding a reply frame: it is too large")
	}
	binary.BigEndian.PutUint32(head, uint32(size))
	return r.writeBetween(head, h, []byte("}"))
}

// writeBetween writes the answer between head and tail, in one write if it is short.
func (r *exchange) writeBetween(head []byte, h *held, tail []byte) error {
	parts := net.Buffers{head, h.text, tail}
	switch {
	case h.file != nil:
	case h.size <= freeSize:
		_, err := r.conn.Write(slices.Concat(parts...))
		return err
	default:
		if read, err := r.writeSoon(&parts); read || err != nil {
			return err
		}
		tail = parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		head, h.text = nil, nil
		if len(parts) > 0 {
			head, h.text = slices.Concat(parts[:len(parts)-1]...), parts[len(parts)-1]
		}
		r.account.spill(h)
	}
	if h.file == nil {
		parts = net.Buffers{head, h.text, tail}
		_, err := parts.WriteTo(r.conn)
		return err
	}
	if _, err := r.conn.Write(head); err != nil {
		return err
	}
	if _, err := io.Copy(r.conn, h.file); err != nil {
		return err
	}
	_, err := r.conn.Write(tail)
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
