// Package wire reads JSON-RPC messages as they are written: what a client sends to us
// and what a server sends. The SDK decodes messages into Go values, which loses digits of
// IDs, names Go types in its errors, and gives up a whole message for one member.
//
// It promises that IDs and progress tokens go back byte for byte, that what is wrong with
// a message is said in words with a bounded piece of it, and that an unreadable message
// is still known by its ID if that can be found. Which member means what is the caller's.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"strconv"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// MaxNesting is how deep a message may nest, as in the SDK.
const MaxNesting = 1000

// A Message has the members of a JSON-RPC message as they are written, nil if they are
// not there. Of two of one name, the last counts.
type Message struct {
	Version, ID, Method, Params, Result, Error json.RawMessage
}

// Read finds the members of a message. The error is an *Unreadable, or that of ctx.
func Read(ctx context.Context, raw []byte) (m Message, err error) {
	s := rawjson.Scanner{Text: raw, Context: ctx}
	for name := range s.Object {
		s.Depth = MaxNesting - 2
		if string(name) == `"result"` {
			s.Depth = rawjson.AnyDepth // how deep it may nest is judged by what it is for
		}
		value := s.Value()
		switch string(name) {
		case `"jsonrpc"`:
			m.Version = value
		case `"id"`:
			m.ID = value
		case `"method"`:
			m.Method = value
		case `"params"`:
			m.Params = value
		case `"result"`:
			m.Result = value
		case `"error"`:
			m.Error = value
		}
	}
	if s.AtEnd() {
		return m, nil
	}
	return m, unreadable(ctx, raw, s.Offset)
}

// MethodName returns the method, if the member is there; ok reports whether it is a text.
func (m Message) MethodName() (name string, ok bool) {
	return rawjson.Text(m.Method)
}

// maxBatch bounds the messages of an array: each takes many times its text.
const maxBatch = 10_000

// Batch splits an array of messages, which older versions of the protocol allow. Anything
// else is one message. ok is false for an array that is not JSON, or has too many, and if
// ctx has ended.
func Batch(ctx context.Context, line []byte) (all []json.RawMessage, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '[' {
		return []json.RawMessage{line}, true
	}
	s := rawjson.Scanner{Text: line, Context: ctx, Depth: rawjson.AnyDepth}
	for _, one := range s.Items {
		if all = append(all, one); len(all) > maxBatch {
			break
		}
	}
	return all, s.AtEnd()
}

// byteOrderMark is U+FEFF, which some programs write first.
var byteOrderMark = []byte("\ufeff")

// TrimMark takes a byte order mark off the beginning of a text.
func TrimMark(raw []byte) []byte { return bytes.TrimPrefix(raw, byteOrderMark) }

// An Unreadable is the error of a text that should be a message.
type Unreadable struct {
	IsJSON  bool
	IsUTF16 bool
	text    string
}

func (e *Unreadable) Error() string { return e.text }

// maxPiece is how many bytes are quoted before and after the place of an error.
const maxPiece = 24

// unreadable returns the error of a text that cannot be read beyond an offset.
func unreadable(ctx context.Context, raw []byte, at int) error {
	trimmed := bytes.TrimSpace(raw)
	s := rawjson.Scanner{Text: trimmed, Context: ctx, Depth: rawjson.AnyDepth}
	s.Value()
	switch valid := s.AtEnd(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(trimmed) == 0:
		return &Unreadable{text: "it is empty"}
	case isUTF16(raw):
		return &Unreadable{IsUTF16: true, text: "it is UTF-16, and MCP wants UTF-8: " + piece(raw, 0)}
	case valid && trimmed[0] != '{':
		return &Unreadable{IsJSON: true, text: "it is " + KindOf(trimmed) + " instead of an object: " + piece(trimmed, 0)}
	case valid, at < len(raw) && (raw[at] == '{' || raw[at] == '[') && nesting(raw[:at+1]) >= MaxNesting: // or it was cut off further on
		return &Unreadable{IsJSON: valid, text: fmt.Sprintf("it nests deeper than %d", MaxNesting)}
	case at >= len(raw):
		return &Unreadable{text: "it is cut off after " + piece(raw, len(raw))}
	}
	return &Unreadable{text: fmt.Sprintf("it is not JSON from byte %d on: %s", at, piece(raw, at))}
}

// NotJSON returns the error of a text that is not JSON, or nests too deep.
func NotJSON(raw []byte) error {
	s := rawjson.Scanner{Text: raw, Depth: MaxNesting}
	if s.Value() != nil {
		s.SkipSpace()
	}
	return unreadable(context.Background(), raw, s.Offset)
}

// IsEmptyList reports whether raw is [], as some languages write an empty object.
func IsEmptyList(raw json.RawMessage) bool {
	return len(raw) > 1 && raw[0] == '[' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// isUTF16 reports whether text has the marks of UTF-16, or a zero byte in its first
// character, which JSON cannot have.
func isUTF16(raw []byte) bool {
	return len(raw) >= 2 && (raw[0] == 0xff && raw[1] == 0xfe || raw[0] == 0xfe && raw[1] == 0xff || raw[0] == 0 || raw[1] == 0)
}

// piece quotes the bytes around an offset.
func piece(raw []byte, at int) string {
	from, to := max(0, at-maxPiece), min(len(raw), at+maxPiece)
	s := string(bytes.ToValidUTF8(raw[from:to], []byte("\ufffd")))
	if from > 0 {
		s = "…" + s
	}
	if to < len(raw) {
		s += "…"
	}
	return strconv.Quote(s)
}

// IsEmptyObject reports whether raw is {}, as some languages write an empty list.
func IsEmptyObject(raw json.RawMessage) bool {
	return len(raw) > 1 && raw[0] == '{' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// KindOf names the type of a JSON value for a person.
func KindOf(raw []byte) string {
	switch jsontext.Value(raw).Kind() {
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindString:
		return "text"
	case jsontext.KindTrue, jsontext.KindFalse, jsontext.KindNull:
		return string(bytes.TrimSpace(raw))
	case jsontext.KindInvalid:
		return "nothing"
	}
	return "a number"
}
