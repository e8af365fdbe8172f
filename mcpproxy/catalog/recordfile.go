package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// A record on disk is one line of JSON, the head, and then the tools in JSON. The
// head has the length of the rest and a digest of it: a file that was cut off or
// altered is not used.

const (
	recordFormat = 3
	maxHead      = 16 << 10
)

var errDamaged = errors.New("the record of its tools is damaged")

// head is the first line of a record.
type head struct {
	Format int        `json:"format"`
	Listed time.Time  `json:"listed,omitzero"` // when the server gave its tools; zero is never
	Tools  int        `json:"tools"`           // how many are shown
	Info   ServerInfo `json:"info"`
	Size   int        `json:"size"` // of the rest, in bytes
	Digest string     `json:"digest"`
}

// recordBody is the part after the head.
type recordBody struct {
	Tools []Tool    `json:"tools"`
	Left  []leftOut `json:"left,omitempty"`
}

func encodeRecord(h head, d Definitions) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // schemas stay as they are
	if err := e.Encode(recordBody{Tools: d.tools, Left: d.left}); err != nil {
		return nil, err
	}
	digest := sha256.Sum256(body.Bytes())
	h.Format, h.Size, h.Digest = recordFormat, body.Len(), hex.EncodeToString(digest[:])
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxHead {
		return nil, errDamaged
	}
	return append(append(line, '\n'), body.Bytes()...), nil
}

// decodeHead reads the head and returns where it ends. size is that of the
// whole file.
func decodeHead(data []byte, size int64) (h head, end int, err error) {
	line, _, ok := bytes.Cut(data[:min(len(data), maxHead)], []byte("\n"))
	if !ok || json.Unmarshal(line, &h) != nil || h.Format != recordFormat {
		return head{}, 0, errDamaged
	}
	end = len(line) + 1
	if h.Size < 0 || int64(end)+int64(h.Size) != size {
		return head{}, 0, errDamaged
	}
	h.Tools = max(0, min(h.Tools, maxTools))
	return h, end, nil
}

func decodeRecord(data []byte) (head, Definitions, error) {
	h, end, err := decodeHead(data, int64(len(data)))
	if err != nil {
		return head{}, Definitions{}, err
	}
	var body recordBody
	digest := sha256.Sum256(data[end:])
	if hex.EncodeToString(digest[:]) != h.Digest || !fewTools(data[end:]) || json.Unmarshal(data[end:], &body) != nil {
		return head{}, Definitions{}, errDamaged
	}
	names := 0
	for i := range body.Tools {
		body.Tools[i].Alias = "" // given anew
		names += len(body.Tools[i].Name)
	}
	if names > maxNames+maxToolName {
		return head{}, Definitions{}, errDamaged
	}
	return h, Definitions{tools: body.Tools, left: body.Left}, nil
}

// fewTools reports whether the tools of a record are no more than a server may have: an
// empty one takes many times its text.
func fewTools(body []byte) bool {
	s, tools := rawjson.Scanner{Text: body}, 0
	for range s.Object {
		for range s.Items {
			if tools++; tools > maxTools+maxLeftOut {
				return false
			}
		}
	}
	return s.OK()
}
