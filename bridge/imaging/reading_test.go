package imaging

import (
	"bytes"
	"context"
	"errors"
	"image"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
)

// A readerAt is a picture that does something when it is read.
type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

func TestErrorOfReadingIsThatOfThePicture(t *testing.T) {
	broken := errors.New("the file is gone")
	picture := readerAt(func([]byte, int64) (int, error) { return 0, broken })
	if _, err := NewDecoders(Limits{}).NewRenderer().Render(t.Context(), picture); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestNothingIsReadAfterTheRun: what it has written may be gone.
func TestNothingIsReadAfterTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := NewDecoders(Limits{})
	picture := readerAt(func([]byte, int64) (int, error) {
		t.Error("it is read")
		return 0, io.EOF
	})
	if _, err := d.NewRenderer().Render(ctx, picture); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	d.Wait()
}

// TestWaitIsForDecodersOfEndedRuns too.
func TestWaitIsForDecodersOfEndedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDecoders(Limits{Time: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		goOn := make(chan struct{})
		picture := readerAt(func([]byte, int64) (int, error) {
			cancel()
			<-goOn
			return 0, io.EOF
		})
		if _, err := d.NewRenderer().Render(ctx, picture); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		waited := false
		go func() {
			d.Wait()
			waited = true
		}()
		if synctest.Wait(); waited {
			t.Error("it does not wait for a decoder")
		}
		close(goOn)
		if synctest.Wait(); !waited {
			t.Error("it waits for nothing")
		}
	})
}

// TestTimeEndsWithinAPicture: that is the reason then, whatever the decoder says of
// what it could not read.
func TestTimeEndsWithinAPicture(t *testing.T) {
	data := bytes.NewReader(asGIF(t, gradient(30, 20)))
	r := NewDecoders(Limits{Time: time.Hour}).NewRenderer()
	reads := 0
	picture := readerAt(func(p []byte, at int64) (int, error) {
		if reads++; reads == 3 { // after its type and its size
			r.time = 0
		}
		return data.ReadAt(p, at)
	})
	if _, err := r.Render(t.Context(), picture); !errors.Is(err, ErrTime) {
		t.Errorf("got %v", err)
	}
}

// TestDecodersStayOnTheirThread, which is the one whose time is counted, though others
// take every thread that they get.
func TestDecodersStayOnTheirThread(t *testing.T) {
	data := bytes.NewReader(asPNG(t, gradient(8, 8)))
	threads, over := map[int]bool{}, make(chan struct{})
	defer close(over)
	picture := readerAt(func(p []byte, at int64) (int, error) {
		for range 10 {
			taken := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				close(taken)
				<-over
				runtime.UnlockOSThread()
			}()
			<-taken
			threads[unix.Gettid()] = true
		}
		return data.ReadAt(p, at)
	})
	if _, err := NewDecoders(Limits{Time: time.Hour}).NewRenderer().Render(t.Context(), picture); err != nil {
		t.Fatal(err)
	}
	if len(threads) != 1 {
		t.Errorf("it was read on %d threads", len(threads))
	}
}

// TestPNGThatGotShorterTakesTheMost: code may change a file after its size was read.
func TestPNGThatGotShorterTakesTheMost(t *testing.T) {
	if got := memoryOfPNG(bytes.NewReader(nil), image.Config{Width: 30, Height: 20}); got != 16*30*20 {
		t.Errorf("%d bytes", got)
	}
}

func TestFaultOfADecoderIsTheError(t *testing.T) {
	data := asPNG(t, gradient(8, 8))
	for _, work := range []string{"reading a picture", "decoding a picture"} {
		t.Run(work, func(t *testing.T) {
			contain.Inject(t, func(at string) bool { return at == work })
			var p *contain.PanicError
			if _, err := render(data, Limits{}); !errors.As(err, &p) || p.Work != work {
				t.Errorf("got %v", err)
			}
		})
	}
}
