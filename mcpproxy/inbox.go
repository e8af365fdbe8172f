package mcpproxy

import (
	"encoding/json"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"strings"
	"sync"
	"time"
)

// inbox takes the notifications of one session before the SDK sees them. The
// SDK queues what it is given without a bound, and a server may send ten
// thousand in a second; here each is dealt with at once or dropped.
type inbox struct {
	changed func() // the tools did

	requests pace // from the server to us: pings, and what we answer with an error

	mu   sync.Mutex
	last int64
	told map[int64]*listener // by progress token
}

func newInbox(changed func()) *inbox {
	return &inbox{changed: changed, requests: pace{burst: 100, every: 10 * time.Millisecond}, told: map[int64]*listener{}}
}

// notified takes in one notification.
func (b *inbox) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed":
		b.changed()
	case "notifications/progress":
		b.progressed(params)
	}
}

// admit reports whether a request of the server may be passed on to be
// answered.
func (b *inbox) admit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests.allow(time.Now())
}

func (b *inbox) progressed(params json.RawMessage) {
	b.mu.Lock()
	waiting := len(b.told) > 0
	b.mu.Unlock()
	if !waiting {
		return
	}
	var p struct {
		ProgressToken   json.Number
		Progress, Total float64
		Message         string
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	token, err := p.ProgressToken.Int64()
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.told[token]; l != nil && l.pace.allow(time.Now()) {
		select {
		case l.news <- progress{p.Progress, p.Total, text.Printable(p.Message, maxProgressText)}:
		default: // the caller is slower than the server
		}
	}
}

const maxProgressText = 512

type progress struct {
	done, total float64
	text        string
}

// listener hands the progress of one call to its caller, outside the loop that
// reads from the server.
type listener struct {
	news  chan progress
	ended chan struct{}
	pace  pace
}

// listen begins to tell of the progress of a call, which carries the token.
// stop returns when all that came has been told; nothing is told after it.
func (b *inbox) listen(tell func(done, total float64, text string)) (token int64, stop func()) {
	l := &listener{
		news: make(chan progress, 64), ended: make(chan struct{}),
		pace: pace{burst: 20, every: 100 * time.Millisecond},
	}
	b.mu.Lock()
	b.last++
	token = b.last
	b.told[token] = l
	b.mu.Unlock()
	go func() {
		defer close(l.ended)
		for p := range l.news {
			tell(p.done, p.total, p.text)
		}
	}()
	return token, func() {
		b.mu.Lock()
		delete(b.told, token)
		close(l.news) // whoever sends holds b.mu
		b.mu.Unlock()
		<-l.ended
	}
}

// pace lets a burst through and then one in every interval.
type pace struct {
	burst int
	every time.Duration
	spent int
	since time.Time
}

func (p *pace) allow(now time.Time) bool {
	if back := int(now.Sub(p.since) / p.every); back > 0 {
		p.spent = max(0, p.spent-back)
		p.since = now
	}
	if p.spent >= p.burst {
		return false
	}
	p.spent++
	return true
}

// forSDK reports whether the SDK is to see a notification after all.
func forSDK(method string) bool {
	return method == "notifications/cancelled" || strings.HasPrefix(method, "notifications/subscriptions/")
}
