package mcpproxy

import "context"

// flight is work that several callers wait for. It does not end with any of
// them: who goes early leaves it to the others and to the next caller.
type flight[T any] struct {
	done chan struct{}
	val  T
	err  error
}

func newFlight[T any]() *flight[T] { return &flight[T]{done: make(chan struct{})} }

// land gives the result to all who wait. It is called once.
func (f *flight[T]) land(val T, err error) {
	f.val, f.err = val, err
	close(f.done)
}

func (f *flight[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.val, f.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}
