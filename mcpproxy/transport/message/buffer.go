package message

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/toolcell/toolcell/internal/memory"
)

// TooLongError is the error of a message of more than Limit bytes, or of a large one for
// which there was no room, or not for long enough.
type TooLongError struct {
	Limit int
	Room  error // memory.ErrFull, memory.ErrLate or nil
}

func (e *TooLongError) Error() string {
	if e.Room != nil {
		return "sent a large message, and " + e.Room.Error()
	}
	return fmt.Sprintf("sent a message longer than %d MiB", e.Limit>>20)
}

func (e *TooLongError) Unwrap() error { return e.Room }

// A Buffer collects a message while it arrives. It bounds the message, and all of them
// together (memory.Arriving). Text stays valid after Release.
type Buffer struct {
	Text  []byte
	Limit int
	// End ends the stream, with a TooLongError, when a large message does not arrive in
	// time.
	End  func(error)
	room memory.Buffer
}

// Release gives back the room of a message that was read or is given up.
func (b *Buffer) Release() { b.room.Release() }

// Add appends a part. The error is a *TooLongError or that of ctx.
func (b *Buffer) Add(ctx context.Context, part []byte) error {
	size := len(b.Text) + len(part)
	if size > b.Limit {
		return &TooLongError{Limit: b.Limit}
	}
	if size > cap(b.Text) {
		if err := b.grow(ctx, min(max(size, 2*cap(b.Text)), b.Limit)); err != nil {
			return err
		}
	}
	b.Text = append(b.Text, part...)
	return nil
}

// ReadAll appends everything that r has.
func (b *Buffer) ReadAll(ctx context.Context, r io.Reader) error {
	part := make([]byte, 16<<10)
	for {
		n, err := r.Read(part)
		if failed := b.Add(ctx, part[:n]); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *Buffer) grow(ctx context.Context, size int) error {
	if memory.IsLarge(size) {
		end, late := b.End, &TooLongError{b.Limit, memory.ErrLate}
		err := b.room.Grow(ctx, size, func() { end(late) })
		if errors.Is(err, memory.ErrFull) {
			return &TooLongError{b.Limit, err}
		}
		if err != nil {
			return err
		}
	}
	b.Text = append(make([]byte, 0, size), b.Text...)
	return nil
}
