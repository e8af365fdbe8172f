package console

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs"
	"golang.org/x/sys/unix"
)

const (
	drawEvery = 100 * time.Millisecond
	drawAfter = time.Second // short work draws nothing
	// echoed is the room that a terminal needs at the end of a line to echo ^C.
	echoed = 3
)

// A Progress is one or more lines at the end of a terminal that show the progress of long
// work. They are redrawn as it goes on, and erased at its end. Elsewhere nothing is drawn.
type Progress struct {
	out    *os.File
	stop   chan struct{}
	ticker sync.WaitGroup

	mu      sync.Mutex
	lines   []string  // to draw
	since   time.Time // when the first of them came
	drawn   int       // how many are on the screen
	midLine bool      // others have written a line without its end
	closed  bool
}

// NewProgress draws on out until Close, unless it is quiet.
func NewProgress(out *os.File, quiet bool) *Progress {
	p := &Progress{out: out, stop: make(chan struct{})}
	if quiet || terminalWidth(out) == 0 || os.Getenv("TERM") == "dumb" {
		p.closed = true
		return p
	}
	p.ticker.Go(func() {
		defer contain.Recover("drawing the progress", nil)
		ticks := time.NewTicker(drawEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				p.draw()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

// Drawn reports whether anything is drawn at all.
func (p *Progress) Drawn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

// Show replaces the lines.
func (p *Progress) Show(lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		p.since = time.Now()
	}
	p.lines = lines
}

// Hide erases the lines until the next Show.
func (p *Progress) Hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = nil
	p.erase()
}

// Wrote tells p of output by others on the terminal: lines are drawn only at the beginning of
// a line.
func (p *Progress) Wrote(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b) > 0 {
		p.midLine = b[len(b)-1] != '\n'
	}
}

// Close erases the lines for good, and leaves others on the screen in their place.
func (p *Progress) Close(left ...string) {
	p.mu.Lock()
	running := !p.closed
	p.closed = true
	p.mu.Unlock()
	if !running {
		return
	}
	close(p.stop)
	p.ticker.Wait()
	p.Hide()
	for _, line := range left {
		fmt.Fprintln(p.out, cut(Plain(line), terminalWidth(p.out)))
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := time.Since(p.since)
	if p.closed || p.midLine || len(p.lines) == 0 || took < drawAfter {
		return
	}
	lines := p.lines
	if rows := terminalRows(p.out); len(lines) >= rows {
		lines = lines[:max(1, rows-1)] // what has left the screen cannot be erased
	}
	if len(lines) == 1 && took > 3*time.Second {
		lines = []string{fmt.Sprintf("%s (%d s)", lines[0], int(took.Seconds()))}
	}
	var b strings.Builder
	b.WriteString(p.eraser())
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(cut(Plain(line), max(1, terminalWidth(p.out)-echoed)))
	}
	p.drawn = len(lines)
	_, _ = p.out.WriteString(b.String())
}

func (p *Progress) erase() {
	_, _ = p.out.WriteString(p.eraser())
	p.drawn = 0
}

// eraser returns what clears the lines (ECMA-48, CUU and ED).
func (p *Progress) eraser() string {
	switch p.drawn {
	case 0:
		return ""
	case 1:
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", p.drawn-1)
}

// terminalRows returns the height of a terminal.
func terminalRows(f *os.File) int {
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Row > 0 {
		return int(size.Row)
	}
	return 24
}

// RunProgress returns a function that shows the progress of a run: on a terminal by p,
// elsewhere nothing in the first second and then a line every other second, unless it
// is quiet.
func RunProgress(p *Progress, quiet bool) func(done, total int64, text string) {
	next := time.Now().Add(time.Second)
	return func(done, total int64, what string) {
		if total > 0 {
			what += fmt.Sprintf(" (%s of %s)", text.Size(done), text.Size(total))
		}
		switch {
		case p.Drawn():
			p.Show(what)
		case quiet || time.Now().Before(next):
		default:
			next = time.Now().Add(2 * time.Second)
			fmt.Fprintf(p.out, "toolcell: %s\n", Shown(p.out, what))
		}
	}
}

// Bars show the progress of a pull, a line for each layer.
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
	var lines []string
	if complete {
		for _, l := range b.last.Layers {
			lines = append(lines, bar(l, 0))
		}
	}
	b.progress.Close(lines...)
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
