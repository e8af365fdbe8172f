package bridge

import "sync"

// A progress reports the progress of one run: that of its calls, as servers
// report it, and the lines that it prints.
type progress struct {
	report func(done, total int64, text string) // may be nil

	mu    sync.Mutex
	ended bool
}

// reports reports whether anyone listens.
func (p *progress) reports() bool { return p.report != nil }

// say reports a text, unless the run is over.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.report != nil && !p.ended {
		p.report(0, 0, text)
	}
}

// end stops it and waits for a report in progress: "Progress notifications MUST
// stop after completion." (MCP specification, Progress)
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
