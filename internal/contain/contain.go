// Package contain keeps a panic inside the unit of work that caused it: a client's
// request, a call from code, a message of a server, a background task.
//
// It promises that such a panic becomes an error, that the error has an ID, and that
// the stack is in the log with the same ID. It does not decide what the error means:
// the caller refuses, answers those that wait, and discards work that is half done. Some
// failures still end the process, since recover does not stop them: fatal errors of the Go
// runtime (concurrent map access, stack overflow, out of memory), panics in goroutines that
// libraries start, and crashes in C.
package contain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// A PanicError says that toolcell's own code panicked. It quotes nothing of the panic,
// which may hold untrusted text or a secret: that is in the log, under ID.
type PanicError struct {
	ID   string // eight hexadecimal digits
	Work string // what panicked, such as "reading a tool list"
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("an internal error in toolcell while %s (ID %s; the log has the details)", e.Work, e.ID)
}

// ErrInternal matches each PanicError (errors.Is). It is also the error of work that ends
// because of one.
var ErrInternal = errors.New("an internal error in toolcell")

// Is reports whether target is ErrInternal.
func (e *PanicError) Is(target error) bool { return target == ErrInternal }

// Recover contains a panic of the function that defers it, and logs it. It then calls
// failed, unless that is nil, to complete what the work owes others. Defer it directly,
// after the defers that are to run when failed has: recover works nowhere else.
//
//	defer close(done)
//	defer contain.Recover("listening for approvals", func(err error) { result = err })
func Recover(work string, failed func(err error)) {
	if p := injected(recover(), work); p != nil {
		fail(report(work, p), failed)
	}
}

// Error is Recover for a function with a named result: it sets *err. Results beside the
// error keep the values that they had, and callers that see an error must not use them.
//
//	func (g *Gate) decide(e Effect) (v Verdict, err error) {
//		defer contain.Error("deciding a call", &err)
func Error(work string, err *error) {
	if p := injected(recover(), work); p != nil {
		*err = report(work, p)
	}
}

// Undo calls undo if the function that defers it panics. The panic goes on to where it is
// contained. Defer it directly.
func Undo(undo func()) {
	if p := recover(); p != nil {
		undo()
		panic(p)
	}
}

// Call calls f and returns its error, or a *PanicError.
func Call(work string, f func() error) (err error) {
	defer Error(work, &err)
	return f()
}

// Func returns f with its panics contained, for functions that are handed to a timer, a
// context or a group.
func Func(work string, f func()) func() {
	return func() {
		defer Recover(work, nil)
		f()
	}
}

// Await calls f in a goroutine and returns its results, panics contained. If ctx ends first it
// returns its cause; f, which cannot be cancelled, goes on.
func Await[T any](ctx context.Context, work string, f func() (T, error)) (value T, err error) {
	type results struct {
		value T
		err   error
	}
	done := make(chan results, 1)
	go func() {
		var r results
		defer func() { done <- r }()
		defer Error(work, &r.err)
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// Value returns f for sync.OnceValue, with its panics contained: it returns denies
// after one.
func Value[T any](work string, denies T, f func() T) func() T {
	return func() (v T) {
		defer Recover(work, func(error) { v = denies })
		return f()
	}
}

// Handler returns h with its panics contained. A response that was begun is cut short:
// the client must not take what there is for the whole.
func Handler(work string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := injected(recover(), work)
			switch {
			case p == nil:
				return
			case p != http.ErrAbortHandler: //nolint:errorlint // a panic, by which net/http means this very value: it says that the response is cut short already
				_ = report(work, p)
			}
			panic(http.ErrAbortHandler) // net/http recovers it, and closes the connection
		}()
		h.ServeHTTP(w, r)
	})
}

// fail calls failed. A panic of that is the end of what can be done for those who wait.
func fail(err error, failed func(error)) {
	if failed == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			_ = report("reporting an internal error", p)
		}
	}()
	failed(err)
}

// report logs a panic and returns what others may know of it.
func report(work string, panicked any) *PanicError {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	err := &PanicError{ID: hex.EncodeToString(id), Work: work}
	defer func() { _ = recover() }() // of the logger: the error counts, not the log
	slog.Error("internal error", "id", err.ID, "while", work, "panic", bounded(panicked), "stack", string(debug.Stack()))
	return err
}

// bounded returns the text of a panic value. Its methods may panic themselves: fmt
// contains that.
func bounded(panicked any) string {
	const maxLength = 500
	s := fmt.Sprint(panicked)
	if len(s) > maxLength {
		s = s[:maxLength] + "…"
	}
	return s
}
