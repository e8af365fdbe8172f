package rootfs

import (
	"fmt"
	"slices"
	"sync"

	"github.com/toolcell/toolcell/images"
)

// Progress reports how far a pull has come.
type Progress struct {
	Text        string
	Done, Total int64 // compressed bytes; Total is 0 if unknown
	Layers      []LayerProgress
}

// LayerProgress reports how far one layer of a pull has come.
type LayerProgress struct {
	Digest      string
	Done, Total int64 // as in Progress
	Finished    bool
}

// meterStep is the number of bytes between two reports.
const meterStep = 512 << 10

// A meter turns bytes read into reports of progress, one at a time.
type meter struct {
	ref    string
	report func(Progress)

	mu       sync.Mutex
	layers   []LayerProgress
	reported int64
	done     int64
}

func newMeter(img *images.Image, ref string, report func(Progress)) *meter {
	m := &meter{ref: ref, report: report}
	for _, l := range img.Layers {
		m.layers = append(m.layers, LayerProgress{Digest: l.Digest.String(), Total: l.Size})
	}
	return m
}

// A layerMeter is the part of a meter for one layer.
type layerMeter struct {
	*meter
	n int
}

func (m *meter) layer(n int) *layerMeter { return &layerMeter{m, n} }

// addBytes counts compressed bytes that have arrived.
func (l *layerMeter) addBytes(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done += int64(n)
	l.layers[l.n].Done += int64(n)
	if l.done-l.reported >= meterStep {
		l.flush()
	}
}

// layerDone counts the layer as unpacked, even if it was in the store and nothing was read.
func (l *layerMeter) layerDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	layer := &l.layers[l.n]
	layer.Done, layer.Finished = layer.Total, true
	l.flush()
}

// flush reports the progress. The caller holds the lock.
func (m *meter) flush() {
	m.reported = m.done
	p := Progress{Layers: slices.Clone(m.layers)}
	finished := 0
	for _, l := range p.Layers {
		p.Done += l.Done
		p.Total += l.Total
		if l.Finished {
			finished++
		}
	}
	p.Text = fmt.Sprintf("pulling %s: %d of %d layers", m.ref, finished, len(p.Layers))
	report(m.report, p)
}

func report(progress func(Progress), p Progress) {
	if progress != nil {
		progress(p)
	}
}
