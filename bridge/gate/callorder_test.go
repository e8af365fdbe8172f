package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestCallsWaitForEarlierOnes(t *testing.T) {
	o := newCallOrder()
	var (
		wait sync.WaitGroup
		got  []int
	)
	for n := 7; n >= 1; n-- {
		wait.Go(func() {
			defer o.decide(n)
			if n%2 == 0 {
				return // it does not wait
			}
			if err := o.await(t.Context(), n); err != nil {
				t.Error(err)
			}
			got = append(got, n) // one after the other: -race would tell
		})
	}
	wait.Wait()
	if want := []int{1, 3, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("%v went on in turn", got)
	}
	o.decide(3) // once more
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := o.await(ctx, 9); !errors.Is(err, over) {
		t.Errorf("a call whose predecessor does not come: %v", err)
	}
	if err := o.await(ctx, 8); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
