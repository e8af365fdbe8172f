package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	fastjson "github.com/segmentio/encoding/json"
)

const (
	// bulkFrom is the size in bytes from which a message takes the way past the
	// SDK, which reads each several times over and copies it.
	bulkFrom = 32 << 10
	// maxNesting is how deep values may nest, as in the SDK.
	maxNesting = 1000
)

// bulk carries large results past the SDK: the SDK gets a short stand-in, which
// is changed for the result where the SDK hands it over.
type bulk struct {
	mark string // begins each stand-in; no server can guess it

	mu      sync.Mutex
	awaited map[jsonrpc.ID]bool // requests whose results are wanted undecoded
	held    map[jsonrpc.ID]json.RawMessage
	ids     map[string]jsonrpc.ID // of what is held, by stand-in
}

func newBulk() *bulk {
	return &bulk{
		mark:    `{"` + rand.Text() + `":`,
		awaited: map[jsonrpc.ID]bool{}, held: map[jsonrpc.ID]json.RawMessage{}, ids: map[string]jsonrpc.ID{},
	}
}

// await notes a request whose result is wanted as the server writes it.
func (b *bulk) await(id jsonrpc.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awaited[id] = true
}

// forget drops a request that has its answer, or that nobody waits for.
func (b *bulk) forget(id jsonrpc.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.awaited, id)
	if _, ok := b.held[id]; ok {
		delete(b.held, id)
		delete(b.ids, b.standIn(id))
	}
}

// cancelled forgets the request that a notification cancels.
func (b *bulk) cancelled(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(p.RequestID); err == nil {
		b.forget(id)
	}
}

// take holds the result of a large answer back and returns one with a stand-in,
// or nil for whatever else the message may be.
func (b *bulk) take(raw []byte) *jsonrpc.Response {
	if len(raw) < bulkFrom {
		return nil
	}
	id, result, ok := answerOf(raw)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.awaited[id] {
		return nil
	}
	delete(b.awaited, id) // a second answer to it is none
	standIn := b.standIn(id)
	b.held[id], b.ids[standIn] = result, id
	return &jsonrpc.Response{ID: id, Result: json.RawMessage(standIn)}
}

func (b *bulk) standIn(id jsonrpc.ID) string { return fmt.Sprintf(`%s"%v"}`, b.mark, id.Raw()) }

// give changes a stand-in for what it stands for.
func (b *bulk) give(result json.RawMessage) json.RawMessage {
	if !bytes.HasPrefix(result, []byte(b.mark)) {
		return result
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.ids[string(result)]
	if !ok {
		return result
	}
	held := b.held[id]
	delete(b.held, id)
	delete(b.ids, string(result))
	return held
}

// answerOf cuts a message into what an answer with a result has, and nothing
// else: whatever is unusual about a message is the SDK's to judge.
func answerOf(raw []byte) (id jsonrpc.ID, result json.RawMessage, ok bool) {
	if deeper(raw, maxNesting) || !fastjson.Valid(raw) {
		return id, nil, false
	}
	all, err := members(raw)
	if err != nil || len(all) != 3 {
		return id, nil, false
	}
	version, _ := find(all, "jsonrpc")
	number, _ := find(all, "id")
	result, ok = find(all, "result")
	if !ok || string(version) != `"2.0"` || len(result) == 0 || result[0] != '{' {
		return id, nil, false
	}
	var value any
	if json.Unmarshal(number, &value) != nil {
		return id, nil, false
	}
	id, err = jsonrpc.MakeID(value)
	return id, result, err == nil && id.IsValid()
}

// deeper reports whether values nest deeper than limit, which must be known
// before anything that recurses reads them.
func deeper(data []byte, limit int) bool {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= limit {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
