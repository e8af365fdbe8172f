package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

func take(t *testing.T, n, times int) (release func()) {
	t.Helper()
	release, err := Take(t.Context(), n, times)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestWhatIsLargeWaitsForRoomUntilItsContextEnds(t *testing.T) {
	release := take(t, 48<<20, Arguments)
	ended := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := make(chan error, 1)
	go func() {
		defer contain.Recover("waiting", func(err error) { waits <- err })
		_, err := Decode(ctx, "decoding", 1<<20, Arguments, func() (int, error) { return 0, errors.New("it was decoded without room") })
		waits <- err
	}()
	take(t, 100<<10, Arguments)() // does not wait for what is large
	select {
	case err := <-waits:
		t.Fatalf("there was room: %v", err)
	default:
	}
	cancel(ended)
	if err := <-waits; !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	release()
	take(t, 48<<20, Arguments)() // nobody has kept any
}

func TestWhatIsSmallHasABoundToo(t *testing.T) {
	var all []func()
	for range Small / (smaller * Schema) {
		all = append(all, take(t, smaller, Schema))
	}
	if small.TryAcquire(1) {
		t.Error("there is more room")
	}
	for _, release := range all {
		release()
	}
	if !small.TryAcquire(Small) {
		t.Fatal("some room was not given back")
	}
	small.Release(Small)
}

func TestMoreThanThereIsGetsAllOfIt(t *testing.T) {
	take(t, 1<<30, Schema)()
}

func TestDecodingEndsWithItsContextAndKeepsItsRoomUntilItIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	_, err := Decode(ctx, "decoding", 48<<20, Arguments, func() (int, error) {
		cancel()
		<-goOn
		return 1, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if large.TryAcquire(1) {
		t.Error("its room was given back while it was decoding")
	}
	close(goOn)
	take(t, 48<<20, Arguments)()
}

func TestPanicWhileDecodingIsAnErrorAndGivesItsRoomBack(t *testing.T) {
	for _, n := range []int{1, 48 << 20} {
		err := contain.Call("decoding", func() error {
			_, err := Decode(t.Context(), "decoding", n, Arguments, func() (int, error) { panic("a fault") })
			return err
		})
		if !errors.Is(err, contain.ErrInternal) {
			t.Errorf("%d bytes: %v", n, err)
		}
		take(t, n, Arguments)()
		if !small.TryAcquire(Small) {
			t.Fatal("small room was kept")
		}
		small.Release(Small)
	}
}

func TestWhatIsFetchedWaitsForRoomUntilItsContextEnds(t *testing.T) {
	var all []func()
	for range Fetches / Layer {
		release, err := Fetch(t.Context(), Layer)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, release)
	}
	ended := errors.New("the image is not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := Fetch(ctx, Wheel); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	for _, release := range all {
		release()
	}
	if !fetches.TryAcquire(Fetches) {
		t.Fatal("some room was not given back")
	}
	fetches.Release(Fetches)
}

func TestDocumentsOfImagesWaitForRoomUntilTheirContextEnds(t *testing.T) {
	for range Images / Image {
		release, err := Documents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Documents(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkTake(b *testing.B) {
	for b.Loop() {
		release, err := Take(b.Context(), 1000, Arguments)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

func TestMessagesThatNeverEndRefuseOthersAndKeepNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		end := func() { ended.Add(1) }
		var stalled []*Buffer
		for range Arriving / (bufferAndGarbage * 48 << 20) {
			b := &Buffer{}
			for _, n := range []int{1 << 20, 16 << 20, 48 << 20} {
				if err := b.Grow(t.Context(), n, end); err != nil {
					t.Fatal(err)
				}
			}
			stalled = append(stalled, b)
		}
		var late, small Buffer
		begun := time.Now()
		if err := late.Grow(t.Context(), 1<<20, end); !errors.Is(err, ErrFull) || time.Since(begun) != timeout {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		late.Release() // it has none
		if err := small.Grow(t.Context(), smaller, end); err != nil {
			t.Errorf("a small message: %v", err)
		}
		take(t, 48<<20, Result)() // decoding goes on

		ctx, cancel := context.WithCancelCause(t.Context())
		closed := errors.New("the session has ended")
		cancel(closed)
		if err := late.Grow(ctx, 1<<20, end); !errors.Is(err, closed) {
			t.Errorf("got %v", err)
		}
		waits := make(chan error, 1)
		go func() {
			defer contain.Recover("waiting", func(err error) { waits <- err })
			waits <- late.Grow(t.Context(), 1<<20, end)
		}()
		synctest.Wait()
		stalled[0].Release()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		late.Release()
		time.Sleep(lifetime)
		synctest.Wait()
		if got := ended.Load(); got != int64(len(stalled)-1) {
			t.Errorf("%d of %d were told to end", got, len(stalled)-1)
		}
		for _, b := range stalled {
			b.Release()
		}
		if !arriving.TryAcquire(Arriving) {
			t.Fatal("some room was not given back")
		}
		arriving.Release(Arriving)
	})
}
