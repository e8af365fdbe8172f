package output

import "sync"

// A Progress reports the progress of one run: that of its calls, as servers
// report it, and the lines that it prints.
type Progress struct {
	report func(done, total int64, text string)

	mu    sync.Mutex
	ended bool
}

// NewProgress makes one that reports to a function, which may be nil: then there is no
// progress.
func NewProgress(report func(done, total int64, text string)) *Progress {
	return &Progress{report: report}
}

// Reports reports whether anyone listens.
func (p *Progress) Reports() bool { return p.report != nil }

// Say reports a text, unless the run is over.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.report != nil && !p.ended {
		p.report(0, 0, text)
	}
}

// End stops it and waits for a report in progress: "Progress notifications MUST
// stop after completion." (MCP specification, Progress)
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
