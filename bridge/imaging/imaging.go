// Package imaging decodes pictures from a sandbox within bounds and encodes them
// again, so that no byte written by the code reaches a client's decoder.
//
// The pictures of one run take a bounded time of the processor and a bounded number
// of pixels. All that are decoded at once, in whatever run, take a bounded amount of
// memory, however large their files are. Render returns when the run is over. The
// bounds on WebP are the weakest: the tables of a crafted picture can take as much
// memory again.
package imaging

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
)

// None is the count of Limits with which all pictures are kept as files.
const None = -1

// Limits bound the pictures that a result carries.
type Limits struct {
	Count  int           // a run; 8 if 0
	Side   int           // of the longer side in pixels; 1024 if 0
	Bytes  int           // of each; 400 KiB if 0
	Pixels int           // of all pictures of a run, as their headers have them; 16 million if 0
	Time   time.Duration // of the processor for all pictures of a run; 2 s if 0
}

// Bounds on memory, in bytes.
const (
	allMemory    = 160 << 20 // for all pictures that wait for each other
	maxMemory    = 96 << 20  // for decoding one picture
	fittingExtra = 16 << 20  // that scaling and encoding a picture can take as well
	smallMemory  = 4 << 20   // what a picture may take to be decoded without waiting
)

// Why a picture is left out, though it may be a good one.
var (
	// ErrTime means that the pictures of the run have used up their time, or that
	// the time of the run is up.
	ErrTime = errors.New("decoding took too long")
	// ErrPixels means that the pictures of the run have too many pixels together.
	ErrPixels = errors.New("too many pixels in all")
)

// Decoders are shared by all runs. Each run decodes one picture at a time. Small
// pictures never wait for those of other runs; others wait until there is memory.
type Decoders struct {
	Limits Limits              // with what counts in place of zero values
	memory *semaphore.Weighted // in bytes
	busy   *sync.WaitGroup     // decoding, also for a run that does not wait any more
}

// NewDecoders returns decoders that keep to the limits.
func NewDecoders(l Limits) *Decoders {
	return &Decoders{Limits: l.withDefaults(), memory: semaphore.NewWeighted(allMemory), busy: &sync.WaitGroup{}}
}

// Within returns the same decoders for a run with other limits.
func (d *Decoders) Within(l Limits) *Decoders {
	return &Decoders{Limits: l.withDefaults(), memory: d.memory, busy: d.busy}
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Count:  cmp.Or(l.Count, 8),
		Side:   cmp.Or(l.Side, 1024),
		Bytes:  cmp.Or(l.Bytes, 400<<10),
		Pixels: cmp.Or(l.Pixels, 16<<20),
		Time:   cmp.Or(l.Time, 2*time.Second),
	}
}

// Wait waits until nothing is being decoded. No Render may begin after it.
func (d *Decoders) Wait() { d.busy.Wait() }

// A Renderer renders the pictures of one run, one after the other.
type Renderer struct {
	decoders *Decoders
	pixels   int           // that are left for further pictures
	time     time.Duration // that is left for them
}

// NewRenderer returns a renderer for the pictures of one run.
func (d *Decoders) NewRenderer() *Renderer {
	return &Renderer{decoders: d, pixels: d.Limits.Pixels, time: d.Limits.Time}
}

// A Rendered is a picture encoded here, to be sent to the client.
type Rendered struct {
	Data          []byte
	MIME          string
	Width, Height int
	Reduced       bool // it has less in it than the one it was made from
}

// Render turns a picture from a sandbox into one within the limits. It always
// encodes it anew, so that no byte from the sandbox reaches a client, whose
// decoder may be less careful. The picture is read as it is decoded. Render returns
// when ctx ends, which must be that of the run; the decoder ends later, when it reads
// on.
func (r *Renderer) Render(ctx context.Context, picture io.ReaderAt) (Rendered, error) {
	if ctx.Err() != nil {
		return Rendered{}, stopped(ctx)
	}
	var out Rendered
	var err error
	done := make(chan struct{})
	r.decoders.busy.Go(func() {
		defer close(done)
		defer contain.Error("reading a picture", &err)
		out, err = r.render(ctx, picture)
	})
	select {
	case <-done:
		return out, err
	case <-ctx.Done():
		return Rendered{}, stopped(ctx)
	}
}

// stopped says why a picture was left when ctx ended.
func stopped(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return ErrTime
	}
	return ctx.Err()
}

// render does the work of Render.
func (r *Renderer) render(ctx context.Context, picture io.ReaderAt) (out Rendered, err error) {
	check, stop := r.clock(ctx)
	defer stop()
	defer contain.Error("decoding a picture", &err) // a bug in a decoder
	h, err := readHeader(picture, check)
	if err != nil {
		return out, err
	}
	release, err := r.admit(ctx, h)
	if err != nil {
		return out, err
	}
	defer release()
	m, err := h.format.decode(newReader(picture, check))
	if over := check(); over != nil {
		return out, over // whatever the decoder made of it
	}
	if err != nil {
		return out, fmt.Errorf("decoding the picture: %w", err)
	}
	if m.Bounds().Empty() {
		return out, errNoPixels // in the first frame of a GIF
	}
	return fit(m, h.mime == "image/jpeg", r.decoders.Limits, check)
}

// admit counts the pixels of a picture, and waits for memory unless it is small.
func (r *Renderer) admit(ctx context.Context, h header) (release func(), err error) {
	if err := h.check(r.decoders.Limits.Pixels); err != nil {
		return nil, err
	}
	if h.width*h.height > r.pixels {
		return nil, ErrPixels
	}
	r.pixels -= h.width * h.height
	if h.memory <= smallMemory {
		return func() {}, nil
	}
	takes := int64(h.memory + fittingExtra)
	if r.decoders.memory.Acquire(ctx, takes) != nil {
		return nil, stopped(ctx)
	}
	return func() { r.decoders.memory.Release(takes) }, nil
}

// clock starts to count the processor's time against the run's. check returns why
// decoding has to stop, or nil. Time on the wall would count what other runs use,
// and leave out the pictures of a run because of them.
func (r *Renderer) clock(ctx context.Context) (check func() error, stop func()) {
	runtime.LockOSThread() // the kernel counts by thread
	begin := threadTime()
	var over error
	check = func() error {
		switch {
		case over != nil:
		case ctx.Err() != nil:
			over = stopped(ctx)
		case threadTime()-begin >= r.time:
			over = ErrTime
		}
		return over
	}
	return check, func() {
		r.time -= threadTime() - begin
		runtime.UnlockOSThread()
	}
}

// threadTime returns how long this thread has run.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // fails for unknown clocks only
	return time.Duration(t.Nano())
}

// A reader gives a decoder so little at a time that it comes back soon: some
// thirty bytes of a JPEG can stand for a walk over all of its blocks. It has no
// other method, for which a decoder would bypass Read.
type reader struct {
	from  *bufio.Reader
	check func() error
}

const mostRead = 128

// newReader reads a picture from its beginning.
func newReader(picture io.ReaderAt, check func() error) *reader {
	return &reader{bufio.NewReader(io.NewSectionReader(picture, 0, math.MaxInt64)), check}
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	return r.from.Read(p[:min(len(p), mostRead)])
}
