package message

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/wire"
	"golang.org/x/time/rate"
)

// Notifications handles the notifications of one session before the SDK sees
// them. The SDK queues them without a bound, and a server may send ten thousand in
// a second; here each is handled at once or dropped.
type Notifications struct {
	Changed func() // the tools did

	requests  *rate.Limiter // from the server to us: pings, questions, and what we answer with an error
	questions questions

	mu        sync.Mutex
	last      int64
	listeners map[int64]*listener // by progress token
}

// NewNotifications returns the Notifications of one session. changed is called when the
// tools of the server have changed.
func NewNotifications(changed func()) *Notifications {
	return &Notifications{Changed: changed, requests: rate.NewLimiter(rate.Every(10*time.Millisecond), 100), listeners: map[int64]*listener{}}
}

func (n *Notifications) receiveProgress(params json.RawMessage) {
	n.mu.Lock()
	waiting := len(n.listeners) > 0
	n.mu.Unlock()
	if !waiting {
		return
	}
	token, ok := wire.Integer(wire.Member(params, "progressToken"))
	if !ok {
		return
	}
	p := progress{done: numberOf(params, "progress"), total: numberOf(params, "total")}
	var said string
	if json.Unmarshal(wire.Member(params, "message"), &said) == nil {
		p.text = text.Printable(said, maxProgressText)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.listeners[token]; l != nil && l.limit.Allow() {
		select {
		case l.news <- p:
		default: // the caller is slower than the server
		}
	}
}

// numberOf reads a number of a notification, or 0.
func numberOf(params json.RawMessage, name string) (value float64) {
	_ = json.Unmarshal(wire.Member(params, name), &value)
	return value
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
	limit *rate.Limiter
}

// Listen starts to report the progress of the call that is sent with the token. stop returns
// when all of it has been reported.
func (n *Notifications) Listen(report func(done, total float64, text string)) (token int64, stop func()) {
	l := &listener{
		news: make(chan progress, 64), ended: make(chan struct{}),
		limit: rate.NewLimiter(rate.Every(100*time.Millisecond), 20),
	}
	n.mu.Lock()
	n.last++
	token = n.last
	n.listeners[token] = l
	n.mu.Unlock()
	go func() {
		defer close(l.ended)
		defer contain.Recover("reporting the progress of a call", nil)
		for p := range l.news {
			_ = contain.Call("reporting the progress of a call", func() error { report(p.done, p.total, p.text); return nil })
		}
	}()
	return token, func() {
		n.mu.Lock()
		delete(n.listeners, token)
		close(l.news) // a sender holds n.mu
		n.mu.Unlock()
		<-l.ended
	}
}
