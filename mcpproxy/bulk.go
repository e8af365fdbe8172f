package mcpproxy

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// bulkFrom is the size in bytes from which a result takes the way past the
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

// hold gives an answer as the SDK is to see it: a large result that is awaited
// is held back, and a stand-in takes its place.
func (b *bulk) hold(answer *jsonrpc.Response) *jsonrpc.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := answer.ID
	awaited := b.awaited[id]
	delete(b.awaited, id) // a second answer to it is none
	if !awaited || len(answer.Result) < bulkFrom {
		return answer
	}
	standIn := b.standIn(id)
	b.held[id], b.ids[standIn] = answer.Result, id
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

// answerOf reads a message that is an answer with a result, and nothing else:
// nil for others, as whatever is unusual about a message is the SDK's to judge.
// The result stays where it is.
func answerOf(raw []byte) *jsonrpc.Response {
	s := scan{text: raw}
	count, members := 0, map[string][]byte{}
	ok := s.object(func(name []byte) bool {
		count++
		s.blank()
		from := s.at
		if !s.value(maxNesting - 1) {
			return false
		}
		members[string(name)] = raw[from:s.at:s.at]
		return true
	})
	s.blank()
	result := members["result"]
	if !ok || s.at < len(raw) || count != 3 || string(members["jsonrpc"]) != `"2.0"` || len(result) == 0 || result[0] != '{' {
		return nil
	}
	var number any
	if json.Unmarshal(members["id"], &number) != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(number)
	if err != nil || !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Result: result}
}
