package mcpproxy

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// serverInfo is what is known of a server besides its tools, from one process to the
// next. It holds no secrets.
type serverInfo struct {
	Legacy       bool             `json:"legacy,omitempty"`       // it takes only the older handshake
	Transport    config.Transport `json:"transport,omitempty"`    // how a remote server was reached at last
	Title        string           `json:"title,omitempty"`        // what it calls itself
	Release      string           `json:"release,omitempty"`      // its version
	About        string           `json:"about,omitempty"`        // its description of itself
	Instructions string           `json:"instructions,omitempty"` // to the model, as the server wishes
}

// A serverRecord is what is known of one server: in memory, and in the store under
// the fingerprint of its entry. What is on disk is read at first need, the head
// alone where that will do.
type serverRecord struct {
	store  store
	server config.Server
	key    func() string // of the record in the store

	mu     sync.Mutex
	looked bool      // at the head on disk
	head   head      // of what is on disk, or would be
	list   *toolList // nil is not known, or not read yet

	// changes counts what may have made the list out of date: a start, and
	// what the server says. asOf is the count that the list belongs to.
	changes, asOf int
}

func newRecord(s config.Server, st store) *serverRecord {
	return &serverRecord{store: st, server: s, key: sync.OnceValue(s.Fingerprint)}
}

// info returns what is remembered.
func (r *serverRecord) info() serverInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	return r.head.Info
}

// remember changes what is remembered, and writes it to disk if it is news.
func (r *serverRecord) remember(change func(*serverInfo)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	was := r.head.Info
	change(&r.head.Info)
	if r.head.Info != was {
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

// changeCount counts what may have made the list out of date. Put takes the count
// of when the server was asked.
func (r *serverRecord) changeCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
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

// olderThan reports whether the server was asked for the list longer than age ago.
// Another process may have asked since the list was read; then that one is taken.
func (r *serverRecord) olderThan(age time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil || time.Since(r.head.Listed) < age {
		return false
	}
	if h, _, err := r.readHead(); err == nil && h.Listed.After(r.head.Listed) {
		was := r.list
		r.head, r.list = h, nil
		if r.load(); r.list == nil {
			r.list = was
		}
	}
	return time.Since(r.head.Listed) >= age
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
	data, _, err := r.store.read(r.key(), maxRecordSize)
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
	data, size, err := r.store.read(r.key(), maxHead)
	if err != nil {
		return head{}, 0, err
	}
	return decodeHead(data, size)
}

// ignore says why a file is not used. It is written again when the server was
// asked.
func (r *serverRecord) ignore(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		r.store.log.Debug("not using what is kept of a server's tools", "server", r.server.Name, "err", err)
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
		err = r.store.write(r.key(), data)
	}
	if err != nil {
		r.store.log.Debug("keeping a server's tools", "server", r.server.Name, "err", err)
	}
}
