package mcpproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// A record on disk is one line of JSON, the head; then the names, in JSON; then
// the blocks of packed definitions one after the other. The head tells how long
// the parts are and has a digest of them: a file that was cut off or altered is
// as good as none.

const (
	recordFormat = 1
	maxHead      = 16 << 10
)

// head is the first line of a record.
type head struct {
	Format int       `json:"format"`
	Listed time.Time `json:"listed,omitzero"` // when the server gave its tools; zero is never
	Tools  int       `json:"tools"`
	Memo   memo      `json:"memo"`
	Names  int       `json:"names"` // bytes
	Blocks int       `json:"blocks"`
	Digest string    `json:"digest"`
}

// recordNames is the part after the head.
type recordNames struct {
	Tools  []toolName `json:"tools"`
	Left   []leftOut  `json:"left,omitempty"`
	Blocks [][2]int   `json:"blocks"` // the first tool of each, and its bytes
	Digest []byte     `json:"digest"` // of the definitions
}

func encodeRecord(h head, d definitions) ([]byte, error) {
	names := recordNames{Tools: d.names, Left: d.left, Digest: d.packed.digest[:]}
	h.Blocks = 0
	for _, b := range d.packed.blocks {
		names.Blocks = append(names.Blocks, [2]int{b.first, len(b.data)})
		h.Blocks += len(b.data)
	}
	body, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	h.Format, h.Names = recordFormat, len(body)
	for _, b := range d.packed.blocks {
		body = append(body, b.data...)
	}
	digest := sha256.Sum256(body)
	h.Digest = hex.EncodeToString(digest[:])
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxHead {
		return nil, errDamaged
	}
	return append(append(line, '\n'), body...), nil
}

// decodeHead reads the head and returns where it ends. size is that of the
// whole file.
func decodeHead(data []byte, size int64) (h head, end int, err error) {
	line, _, ok := bytes.Cut(data[:min(len(data), maxHead)], []byte("\n"))
	if !ok || json.Unmarshal(line, &h) != nil || h.Format != recordFormat {
		return head{}, 0, errDamaged
	}
	end = len(line) + 1
	if h.Names < 0 || h.Blocks < 0 || int64(end)+int64(h.Names)+int64(h.Blocks) != size {
		return head{}, 0, errDamaged
	}
	h.Tools = max(0, min(h.Tools, maxTools))
	return h, end, nil
}

func decodeRecord(data []byte) (head, definitions, error) {
	h, end, err := decodeHead(data, int64(len(data)))
	if err != nil {
		return head{}, definitions{}, err
	}
	body := data[end:]
	digest := sha256.Sum256(body)
	var names recordNames
	if hex.EncodeToString(digest[:]) != h.Digest || json.Unmarshal(body[:h.Names], &names) != nil {
		return head{}, definitions{}, errDamaged
	}
	d := definitions{names: names.Tools, left: names.Left, packed: packed{count: len(names.Tools)}}
	copy(d.packed.digest[:], names.Digest)
	rest := bytes.Clone(body[h.Names:]) // without the names, which are in memory already
	for _, b := range names.Blocks {
		first, size := b[0], b[1]
		if size < 0 || size > len(rest) {
			return head{}, definitions{}, errDamaged
		}
		d.packed.blocks = append(d.packed.blocks, block{first, rest[:size:size]})
		rest = rest[size:]
	}
	return h, d, nil
}

// equal reports whether a server gave the same definitions again.
func (d definitions) equal(other definitions) bool {
	return d.packed.count == other.packed.count && d.packed.digest == other.packed.digest
}
