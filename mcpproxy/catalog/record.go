package catalog

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// ServerInfo describes a server apart from its tools. It is kept from one process to the
// next and holds no secrets.
type ServerInfo struct {
	Legacy       bool             `json:"legacy,omitempty"`       // it takes only the older handshake
	Transport    config.Transport `json:"transport,omitempty"`    // how a remote server was reached at last
	Title        string           `json:"title,omitempty"`        // what it calls itself
	Release      string           `json:"release,omitempty"`      // its version
	About        string           `json:"about,omitempty"`        // its description of itself
	Instructions string           `json:"instructions,omitempty"` // to the model, as the server wishes
	Failure      string           `json:"failure,omitempty"`      // why the last start or listing failed, if it did
	Partial      string           `json:"partial,omitempty"`      // why not all of its tools are in the list, if so
}

// A Record describes one server and its tools: in memory, and in the store under the
// fingerprint of its entry. It reads the file when it first needs it, and only the head
// where that suffices.
type Record struct {
	store  Store
	server config.Server
	key    string // of the record in its store

	mu     sync.Mutex
	looked bool  // at the head on disk
	head   head  // of what is on disk, or would be
	list   *List // nil is not known, or not read yet

	// changes counts what may have made the list out of date: a start, and
	// what the server says. asOf is the count that the list belongs to.
	changes, asOf int
}

// NewRecord returns the record of a server in a store. It reads nothing yet.
func NewRecord(s config.Server, st Store) *Record {
	return &Record{store: st, server: s, key: s.Fingerprint()}
}

// Key names the record in its store.
func (r *Record) Key() string { return r.key }

// Info returns what the record has besides the tools.
func (r *Record) Info() ServerInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	return r.head.Info
}

// Remember lets change edit what Info returns, and writes the record if it differs.
func (r *Record) Remember(change func(*ServerInfo)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	info := r.head.Info
	change(&info)
	if info != r.head.Info {
		r.load() // which reads the head again, so only then
		change(&r.head.Info)
		r.save()
	}
}

// Count returns how many tools can be seen, 0 if none are known.
func (r *Record) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	return r.head.Tools
}

// Tools returns the list if there is one, however old. changed reports that it may be out of
// date.
func (r *Record) Tools() (list *List, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	return r.list, r.changes != r.asOf
}

// ChangeCount counts what may have made the list out of date. Put takes the count
// of when the server was asked.
func (r *Record) ChangeCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// Outdated marks the list as one that may have changed.
func (r *Record) Outdated() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
}

// Put stores a list that the server has just sent. If it has not changed, the List stays the
// same one, so that an index of it stays valid.
func (r *Record) Put(d Definitions, asOf int) *List {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load()
	d.sent = nil
	if r.list == nil || !reflect.DeepEqual(r.list.definitions.tools, d.tools) || !slices.Equal(r.list.definitions.left, d.left) {
		r.list = newList(d, filterOf(r.server))
	}
	r.asOf = asOf
	r.head.Listed, r.head.Tools = time.Now().UTC(), len(r.list.tools)
	r.save()
	return r.list
}

// OlderThan reports whether the server was asked for the list longer than age ago.
// Another process may have asked since the list was read; then that one is taken.
func (r *Record) OlderThan(age time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil || time.Since(r.head.Listed) < age {
		return false
	}
	if h, err := r.readHead(); err == nil && h.Listed.After(r.head.Listed) {
		head, list := r.head, r.list
		r.head, r.list = h, nil
		if r.load(); r.list == nil {
			r.head, r.list = head, list
		}
	}
	return time.Since(r.head.Listed) >= age
}

// look reads the head from disk, once. r.mu is held.
func (r *Record) look() {
	if r.looked {
		return
	}
	r.looked = true
	if h, err := r.readHead(); err == nil {
		r.head = h
	} else {
		r.ignore(err)
	}
}

// load reads the list from disk if it is there and was not read yet. r.mu is held.
func (r *Record) load() {
	r.look()
	if r.list != nil || r.head.Listed.IsZero() {
		return
	}
	data, _, err := r.store.read(r.key, maxRecordSize)
	if err == nil {
		var h head
		var d Definitions
		if h, d, err = decodeRecord(data); err == nil {
			r.list = newList(d, filterOf(r.server))
			r.head = h
			r.head.Tools = len(r.list.tools)
			return
		}
	}
	r.ignore(err)
	r.head.Listed, r.head.Tools = time.Time{}, 0
}

func (r *Record) readHead() (head, error) {
	data, size, err := r.store.read(r.key, maxHead)
	if err != nil {
		return head{}, err
	}
	h, _, err := decodeHead(data, size)
	return h, err
}

// ignore logs why a file is not used. It is written again with the next list.
func (r *Record) ignore(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		r.store.Log.Debug("not using what is kept of a server's tools", "server", r.server.Name, "err", err)
	}
}

// save writes the record. If that fails, the next process has to list the tools again. r.mu is
// held.
func (r *Record) save() {
	var d Definitions
	if r.list != nil {
		d = r.list.definitions
	}
	data, err := encodeRecord(r.head, d)
	if err == nil {
		err = r.store.write(r.key, data)
	}
	if err != nil {
		r.store.Log.Debug("keeping a server's tools", "server", r.server.Name, "err", err)
	}
}
