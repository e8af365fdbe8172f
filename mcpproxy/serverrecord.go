package mcpproxy

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/transport"
)

// memo is what is known of a server besides its tools, from one process to the
// next. It holds no secrets.
type memo struct {
	Legacy       bool             `json:"legacy,omitempty"`       // it takes only the older handshake
	Transport    config.Transport `json:"transport,omitempty"`    // how a remote server was reached at last
	Title        string           `json:"title,omitempty"`        // what it calls itself
	Release      string           `json:"release,omitempty"`      // its version
	About        string           `json:"about,omitempty"`        // its description of itself
	Instructions string           `json:"instructions,omitempty"` // to the model, as the server wishes
}

// A serverRecord is what is known of one server: in memory, and on the shelf under
// the fingerprint of its entry. What is on disk is read at first need, the head
// alone where that will do.
type serverRecord struct {
	shelf  shelf
	server config.Server
	key    func() string

	mu     sync.Mutex
	looked bool      // at the head on disk
	head   head      // of what is on disk, or would be
	list   *toolList // nil is not known, or not read yet

	// changes counts what may have made the list out of date: a start, and
	// what the server says. asOf is the count that the list belongs to.
	changes, asOf int
	asking        *flight[*toolList]
	askingAsOf    int
	following     bool // a goroutine asks after each change
	learning      *flight[*toolList]
	tried         time.Time          // when a refresh began, so that a broken server is not started again and again
	timedOut      *flight[*toolList] // for which a caller stopped waiting
}

func newRecord(s config.Server, shelf shelf) *serverRecord {
	return &serverRecord{shelf: shelf, server: s, key: sync.OnceValue(s.Fingerprint)}
}

// memo returns what is remembered.
func (r *serverRecord) memo() memo {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	return r.head.Memo
}

// handshake returns the handshake that the server took last time.
func (r *serverRecord) handshake() transport.Handshake {
	m := r.memo()
	return transport.Handshake{Legacy: m.Legacy, Transport: m.Transport}
}

// recordHandshake remembers the handshake that the server took.
func (r *serverRecord) recordHandshake(found transport.Handshake) {
	r.remember(func(m *memo) { m.Legacy, m.Transport = found.Legacy, found.Transport })
}

// remember changes what is remembered, and writes it to disk if it is news.
func (r *serverRecord) remember(change func(*memo)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	was := r.head.Memo
	change(&r.head.Memo)
	if r.head.Memo != was {
		r.load()
		r.save()
	}
}

// count returns how many tools can be seen, 0 if none are known.
func (r *serverRecord) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	return r.head.Tools
}

// tools returns the list if there is one, however old. changed says that it may
// be another by now.
func (r *serverRecord) tools() (list *toolList, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	return r.list, r.changes != r.asOf
}

// outdated marks the list as one that may have changed.
func (r *serverRecord) outdated() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
}

// put takes in a list that the server just gave. One that did not change stays
// the same toolList, so that nothing that was made of it has to be made again.
func (r *serverRecord) put(d definitions, asOf int) *toolList {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	if r.list == nil || !r.list.definitions.equal(d) {
		r.list = newToolList(d, filterOf(r.server))
	}
	r.asOf = asOf
	r.head.Listed, r.head.Tools = time.Now().UTC(), len(r.list.tools)
	r.save()
	return r.list
}

// errNotYet is for a list that is under way.
var errNotYet = errors.New("it is still starting or has not answered yet; search again later")

// await waits for a list with patience, but only once: who comes after somebody
// whose patience ran out does not lose the same time again.
func (r *serverRecord) await(ctx context.Context, f *flight[*toolList], patience time.Duration) (*toolList, error) {
	r.mu.Lock()
	if r.timedOut == f {
		patience = 0
	}
	r.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.val, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timedOut = f
	return nil, errNotYet
}

// old reports whether it is time to ask again though nothing is known to have
// changed. Another process may have done it.
func (r *serverRecord) old(after, retry time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil || time.Since(r.head.Listed) < after || time.Since(r.tried) < retry {
		return false
	}
	if h, _, err := r.readHead(); err == nil && h.Listed.After(r.head.Listed) {
		was := r.list
		r.head, r.list = h, nil
		if r.load(); r.list == nil {
			r.list = was
		}
		if time.Since(r.head.Listed) < after {
			return false
		}
	}
	r.tried = time.Now()
	return true
}

// look reads the head from disk, once. r.mu is held.
func (r *serverRecord) look() {
	if r.looked {
		return
	}
	r.looked = true
	if h, _, err := r.readHead(); err == nil {
		r.head = h
	} else {
		r.ignore(err)
	}
}

// load reads the list from disk if it is there and was not read yet. r.mu is held.
func (r *serverRecord) load() {
	r.look()
	if r.list != nil || r.head.Listed.IsZero() {
		return
	}
	data, _, err := r.shelf.read(r.key(), maxRecordSize)
	if err == nil {
		var h head
		var d definitions
		if h, d, err = decodeRecord(data); err == nil {
			r.list = newToolList(d, filterOf(r.server))
			r.head = h
			r.head.Tools = len(r.list.tools)
			return
		}
	}
	r.ignore(err)
	r.head.Listed, r.head.Tools = time.Time{}, 0
}

func (r *serverRecord) readHead() (head, int, error) {
	data, size, err := r.shelf.read(r.key(), maxHead)
	if err != nil {
		return head{}, 0, err
	}
	return decodeHead(data, size)
}

// ignore says why a file is not used. It is written again when the server was
// asked.
func (r *serverRecord) ignore(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		r.shelf.log.Debug("not using what is kept of a server's tools", "server", r.server.Name, "err", err)
	}
}

// save writes the record. A full or read-only disk costs the next process time
// and this one nothing. r.mu is held.
func (r *serverRecord) save() {
	var d definitions
	if r.list != nil {
		d = r.list.definitions
	}
	data, err := encodeRecord(r.head, d)
	if err == nil {
		err = r.shelf.write(r.key(), data)
	}
	if err != nil {
		r.shelf.log.Debug("keeping a server's tools", "server", r.server.Name, "err", err)
	}
}
