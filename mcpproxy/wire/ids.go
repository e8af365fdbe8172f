package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// MaxID bounds IDs that a server gives, in bytes: those of open requests are kept.
const MaxID = 1 << 10

// IsID reports whether raw is a text or a number, as IDs of requests must be.
func IsID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' && utf8.Valid(raw) || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// IDs gives each request of a peer an ID of our own, for the SDK: its IDs are texts, or
// integers made of a float64, so that 1764115200123456789 and 1.5 would come back as
// others. Since no number is given twice, a message about an earlier request of the same ID
// cannot hit a later one. The zero value is ready.
type IDs struct {
	mu   sync.Mutex
	last int64
	open map[jsonrpc.ID]opened
}

// opened is what a request of the peer had, as it was written.
type opened struct {
	id, token json.RawMessage
	key       string
}

// Open returns our ID for a request. token is the progress token that it carries, or nil.
func (n *IDs) Open(id, token json.RawMessage) jsonrpc.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	ours := number(n.last)
	if n.open == nil {
		n.open = map[jsonrpc.ID]opened{}
	}
	n.open[ours] = opened{bytes.Clone(id), bytes.Clone(token), keyOf(id)}
	return ours
}

// number returns an ID that is a number. Below 2^53, a float64 has them all.
func number(i int64) jsonrpc.ID {
	id, _ := jsonrpc.MakeID(float64(i)) // it takes any float64
	return id
}

// Close forgets a request and returns its ID as the peer wrote it.
func (n *IDs) Close(ours jsonrpc.ID) (id json.RawMessage, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, ok := n.open[ours]
	delete(n.open, ours)
	return o.id, ok
}

// Written returns the ID of an open request as the peer wrote it.
func (n *IDs) Written(ours jsonrpc.ID) (id json.RawMessage, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, ok := n.open[ours]
	return o.id, ok
}

// Token returns the progress token of an open request as the peer wrote it.
func (n *IDs) Token(ours jsonrpc.ID) (token json.RawMessage, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.open[ours]
	return o.token, o.token != nil
}

// Named returns our ID for the open request that the peer names by its own ID: the last,
// if it uses one twice.
func (n *IDs) Named(id json.RawMessage) (ours jsonrpc.ID, ok bool) {
	if !IsID(id) {
		return ours, false
	}
	key, latest := keyOf(id), int64(0)
	n.mu.Lock()
	defer n.mu.Unlock()
	for one, o := range n.open {
		if i, _ := one.Raw().(int64); o.key == key && i > latest {
			ours, ok, latest = one, true, i
		}
	}
	return ours, ok
}

// keyOf is the same for IDs that are written differently and mean the same.
func keyOf(id json.RawMessage) string {
	if s, isText := rawjson.Text(id); isText {
		return `"` + s
	}
	if i, ok := Integer(id); ok {
		return strconv.FormatInt(i, 10)
	}
	return string(id)
}

// Integer reads a number without a fraction, however it is written. Of a number that a
// float64 does not have exactly, only plain digits are read.
func Integer(raw json.RawMessage) (int64, bool) {
	if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// OurID reads the ID of an answer to a request of ours, whose IDs are integers. Some
// servers write 3.0 or "3" for 3.
func OurID(raw json.RawMessage) (id jsonrpc.ID, ok bool) {
	if len(raw) > MaxID {
		return id, false
	}
	if s, isText := rawjson.Text(raw); isText {
		raw = json.RawMessage(s)
	}
	i, ok := Integer(raw)
	if !ok || i < 0 || i >= 1<<53 {
		return id, false
	}
	return number(i), true
}

// Encode writes an answer to the request that has this ID.
func Encode(answer *jsonrpc.Response, id json.RawMessage) ([]byte, error) {
	line, err := jsonrpc.EncodeMessage(&jsonrpc.Response{Result: answer.Result, Error: answer.Error})
	if err != nil {
		return nil, err
	}
	// It is the SDK that writes the version first.
	const head = `{"jsonrpc":"2.0"`
	rest := bytes.TrimPrefix(line, []byte(head))
	out := make([]byte, 0, len(line)+len(id)+len(`,"id":`)+1) // and a line end
	out = append(append(append(out, head...), `,"id":`...), id...)
	return append(out, rest...), nil
}
