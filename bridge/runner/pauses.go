package runner

import (
	"context"
	"net"
	"sync"
	"time"
)

// pauses keep apart the pauses of a run, in which its sandbox may stand still, and the
// frames that arrive from it.
type pauses struct {
	turn chan struct{} // full during a pause, or while one is prevented

	beginning sync.Mutex // begin waits with it
	n         int        // pauses that have begun and are not over

	mu     sync.Mutex
	paused bool
	frame  net.Conn // that a frame is being read from; nil if none is
}

func newPauses() *pauses { return &pauses{turn: make(chan struct{}, 1)} }

// begin begins a pause. Pauses may overlap.
func (p *pauses) begin() (end func()) {
	p.beginning.Lock()
	defer p.beginning.Unlock()
	if p.n++; p.n == 1 {
		p.turn <- struct{}{}
		p.set(true)
	}
	return p.end
}

func (p *pauses) end() {
	p.beginning.Lock()
	defer p.beginning.Unlock()
	if p.n--; p.n == 0 {
		p.set(false)
		<-p.turn
	}
}

func (p *pauses) set(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	p.limitFrame()
}

// prevent keeps pauses from beginning until done is called. It fails during one.
func (p *pauses) prevent() (done func(), ok bool) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, true
	default:
		return nil, false
	}
}

// wait waits until no pause can be going on.
func (p *pauses) wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		<-p.turn
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reading bounds how long reading a frame takes until done is called. Pauses do not
// count.
func (p *pauses) reading(c net.Conn) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frame = c
	p.limitFrame()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.frame = nil
		_ = c.SetReadDeadline(time.Time{})
	}
}

// limitFrame sets when reading the frame fails. The caller holds mu.
func (p *pauses) limitFrame() {
	if p.frame == nil {
		return
	}
	var at time.Time
	if !p.paused {
		at = time.Now().Add(frameTime)
	}
	_ = p.frame.SetReadDeadline(at)
}
