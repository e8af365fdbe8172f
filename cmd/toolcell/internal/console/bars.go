package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
)

// Bars show how far a pull is, a line for each layer.
type Bars struct {
	progress *Progress
	began    []time.Time // when something of a layer first came
	last     rootfs.Progress
}

// NewBars draws by p, which it closes.
func NewBars(p *Progress) *Bars { return &Bars{progress: p} }

// Show updates the progress of a pull: it is the progress function of
// Store.Pull.
func (b *Bars) Show(p rootfs.Progress) {
	b.last = p
	if len(p.Layers) == 0 {
		b.progress.Show(p.Text)
		return
	}
	for len(b.began) < len(p.Layers) {
		b.began = append(b.began, time.Now())
	}
	lines := make([]string, len(p.Layers))
	for i, l := range p.Layers {
		lines[i] = bar(l, time.Since(b.began[i]))
	}
	if len(lines) >= terminalRows(b.progress.out) { // those on their way are the ones to see
		var busy, finished []string
		for i, line := range lines {
			if !p.Layers[i].Finished {
				busy = append(busy, line)
			} else {
				finished = append(finished, line)
			}
		}
		lines = slices.Concat(busy, finished)
	}
	b.progress.Show(lines...)
}

// Finished returns how many layers are complete.
func (b *Bars) Finished() (n int) {
	for _, l := range b.last.Layers {
		if l.Finished {
			n++
		}
	}
	return n
}

// Close ends the drawing, and leaves the bars on the screen if the pull is complete.
func (b *Bars) Close(complete bool) {
	if !complete {
		b.progress.Close()
		return
	}
	var lines []string
	for _, l := range b.last.Layers {
		lines = append(lines, bar(l, 0))
	}
	b.progress.CloseWith(lines...)
}

const barWidth = 24

func bar(l rootfs.LayerProgress, took time.Duration) string {
	name := l.Digest
	if len(name) > len("sha256:")+12 {
		name = name[len("sha256:") : len("sha256:")+12]
	}
	filled := 0
	if l.Total > 0 {
		filled = int(barWidth * min(l.Done, l.Total) / l.Total)
	}
	state := "done"
	switch {
	case l.Finished:
		filled = barWidth
	case l.Done == 0:
		state = "waiting"
	default:
		state = text.Size(int64(float64(l.Done)/max(took.Seconds(), 0.1))) + "/s"
	}
	return fmt.Sprintf("%s [%s%s] %10s of %10s  %s", name, strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled),
		text.Size(l.Done), text.Size(l.Total), state)
}
