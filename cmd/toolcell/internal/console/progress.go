package console

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/toolcell/toolcell/rootfs"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bars draws a bar for each layer of a pull.
type Bars struct {
	all    *mpb.Progress
	layers []*mpb.Bar
	last   []time.Time // when a layer was last heard of
}

// NewBars draws on w until Close.
func NewBars(ctx context.Context, w *os.File) *Bars {
	return &Bars{all: mpb.NewWithContext(ctx, mpb.WithOutput(w), mpb.WithWidth(32))}
}

// Show updates the progress of a pull: it is the progress function of
// Store.Pull.
func (b *Bars) Show(p rootfs.Progress) {
	for n, l := range p.Layers {
		if n == len(b.layers) {
			b.layers, b.last = append(b.layers, b.add(l)), append(b.last, time.Now())
		}
		b.layers[n].EwmaSetCurrent(l.Done, time.Since(b.last[n]))
		b.last[n] = time.Now()
		if l.Finished {
			b.layers[n].SetTotal(l.Total, true)
		}
	}
}

func (b *Bars) add(l rootfs.LayerProgress) *mpb.Bar {
	name := l.Digest
	if len(name) > len("sha256:")+12 {
		name = name[len("sha256:") : len("sha256:")+12]
	}
	return b.all.AddBar(l.Total,
		mpb.PrependDecorators(decor.Name(name+" "), decor.CountersKibiByte("% 8.1f / % 8.1f", decor.WCSyncSpace)),
		mpb.AppendDecorators(
			decor.OnComplete(decor.EwmaSpeed(decor.SizeB1024(0), "% .1f", 30, decor.WCSyncSpace), ""),
			decor.OnComplete(decor.EwmaETA(decor.ET_STYLE_GO, 30, decor.WCSyncSpace), "done"),
		))
}

// Close draws the bars for the last time.
func (b *Bars) Close() {
	for _, bar := range b.layers {
		if !bar.Completed() {
			bar.Abort(false)
		}
	}
	b.all.Wait()
}

// PullProgress returns a function that reports the progress of a pull on w:
// nothing in the first second, then a line every other second.
func PullProgress(w *os.File) func(done, total int64, text string) {
	next := time.Now().Add(time.Second)
	return func(done, total int64, text string) {
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(2 * time.Second)
		if total > 0 {
			fmt.Fprintf(w, "toolcell: %s (%d of %d MB)\n", Shown(w, text), done>>20, total>>20)
		} else {
			fmt.Fprintf(w, "toolcell: %s\n", Shown(w, text))
		}
	}
}
