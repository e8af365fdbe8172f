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
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on what runs make the host hold in memory, in bytes.
const (
	maxHeld      = 96 << 20    // frames and answers of all runs together
	maxRunHeld   = maxHeld / 2 // of one run, so that it alone keeps no other waiting
	ownHeld      = 1 << 20     // of each run in addition: its short frames do not wait for other runs
	freeSize     = 4 << 10     // frames and answers up to this are not counted: a run has at most maxCalls of them
	maxInFile    = 256 << 20   // answers of one run that wait in files
	makersAtOnce = 1           // answers that are being made
)

// A Budget bounds the memory for frames and answers of all runs. A frame waits
// until there is room for it. An answer does not wait, since the memory is already
// taken when its size is known: if there is no room, or the code does not read it
// soon, it goes to a file until the code does.
type Budget struct {
	shared *semaphore.Weighted
	makers *semaphore.Weighted
	dir    string // for the files of answers
}

// NewBudget makes the budget of all runs of a server. Answers for which there is no
// room wait in files in dir; if dir is empty, they become errors.
func NewBudget(dir string) *Budget {
	return &Budget{shared: semaphore.NewWeighted(maxHeld), makers: semaphore.NewWeighted(makersAtOnce), dir: dir}
}

// An account is the part of the budget that one run takes.
type account struct {
	*Budget
	own    *semaphore.Weighted
	share  *semaphore.Weighted
	inFile atomic.Int64
}

func (b *Budget) newAccount() *account {
	return &account{Budget: b, own: semaphore.NewWeighted(ownHeld), share: semaphore.NewWeighted(maxRunHeld)}
}

// acquire waits until there is room for a frame of n bytes, either in the run's own
// part or in the shared one. Nothing that holds room waits for more, so there is no
// deadlock: an answer takes only room that is free.
func (a *account) acquire(ctx context.Context, n int) (release func(), err error) {
	type room struct {
		release func()
		err     error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	either := make(chan room, 2)
	for _, wait := range []func(context.Context, int64) (func(), error){a.acquireOwn, a.acquireShared} {
		go func() {
			var got room
			defer func() { either <- got }()
			defer contain.Error("waiting for room", &got.err)
			got.release, got.err = wait(ctx, int64(n))
		}()
	}
	first := <-either
	cancel()
	if second := <-either; second.err == nil {
		if first.err != nil {
			return second.release, nil
		}
		second.release()
	}
	return first.release, first.err
}

func (a *account) acquireOwn(ctx context.Context, size int64) (release func(), err error) {
	return func() { a.own.Release(size) }, a.own.Acquire(ctx, size)
}

func (a *account) acquireShared(ctx context.Context, size int64) (release func(), err error) {
	if err := a.share.Acquire(ctx, size); err != nil {
		return nil, err
	}
	if err := a.shared.Acquire(ctx, size); err != nil {
		a.share.Release(size)
		return nil, err
	}
	return func() { a.releaseShared(size) }, nil
}

// tryOwn takes room for n bytes in the run's own part if there is any now.
func (a *account) tryOwn(n int) (release func(), ok bool) {
	switch size := int64(n); {
	case n <= freeSize:
		return func() {}, true
	case a.own.TryAcquire(size):
		return func() { a.own.Release(size) }, true
	}
	return nil, false
}

// tryAcquire takes room for n bytes if there is any now.
func (a *account) tryAcquire(n int) (release func(), ok bool) {
	if release, ok := a.tryOwn(n); ok {
		return release, true
	}
	switch size := int64(n); {
	case !a.share.TryAcquire(size):
		return nil, false
	case !a.shared.TryAcquire(size):
		a.share.Release(size)
		return nil, false
	default:
		return func() { a.releaseShared(size) }, true
	}
}

func (a *account) releaseShared(size int64) {
	a.shared.Release(size)
	a.share.Release(size)
}

// A held is the frame of an answer to a call, a result or an error, that waits to be written.
type held struct {
	parts   net.Buffers // what is left of it, if it is in memory
	file    *os.File    // the file that it is in, if it is not
	release func()      // of its room, when it has been written
}

// hold keeps an answer until it is written: in memory, or in a file if there is no
// room for it. It was checked when it was made, and is neither encoded again nor copied.
func (a *account) hold(id int64, result json.RawMessage, err error) held {
	member, answer := "result", []byte(result)
	if err != nil {
		member = "error"
		answer, _ = json.Marshal(asCallError(err)) // texts only: it does not fail
	} else if len(result) == 0 {
		answer = []byte("null")
	}
	head := fmt.Appendf(make([]byte, 4), `{"type":"reply","id":%d,"%s":`, id, member)
	h := held{parts: net.Buffers{head, answer, []byte("}")}}
	if h.size()-4 > math.MaxUint32 {
		return a.hold(id, nil, fmt.Errorf("an answer of %s is too large", text.Size(int64(len(answer)))))
	}
	binary.BigEndian.PutUint32(head, uint32(h.size()-4))
	release, ok := a.tryAcquire(len(answer))
	if ok {
		h.release = release
		return h
	}
	if err := a.moveToFile(&h); err != nil {
		return a.hold(id, nil, fmt.Errorf("an answer of %s cannot be kept until it is read: %w", text.Size(int64(len(answer))), err))
	}
	return h
}

// size is how many bytes are left in memory.
func (h *held) size() (n int) {
	for _, part := range h.parts {
		n += len(part)
	}
	return n
}

// spill moves an answer that is in memory to a file, if that works, and gives its room
// back.
func (a *account) spill(h *held) {
	release := h.release
	if h.size() > freeSize && a.moveToFile(h) == nil {
		release()
	}
}

// moveToFile moves what is left of an answer to a file.
func (a *account) moveToFile(h *held) (err error) {
	size := int64(h.size())
	defer func() {
		if err != nil {
			a.inFile.Add(-size)
		}
	}()
	if a.inFile.Add(size) > maxInFile || a.dir == "" {
		return errors.New("too many wait already; make fewer calls at once")
	}
	file, err := a.writeFile(slices.Clone(h.parts)) // which it empties
	if err != nil {
		return err
	}
	h.parts, h.file, h.release = nil, file, func() {
		file.Close()
		a.inFile.Add(-size)
	}
	return nil
}

// writeFile writes an answer to an unnamed file, which the kernel removes when its
// descriptor is closed, however this process ends.
func (a *account) writeFile(answer net.Buffers) (*os.File, error) {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(a.dir, ".answer-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = answer.WriteTo(file)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
