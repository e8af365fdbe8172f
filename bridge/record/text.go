package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
)

// Keep says which Texts are kept. Of all others there is only the digest and the size.
type Keep string

// What is kept.
const (
	KeepNone      Keep = "none"
	KeepArguments Keep = "arguments" // all but what servers answered: the default
	KeepAll       Keep = "all"
)

// A source is who wrote a Text: what is kept goes by it.
type source int

const (
	input  source = iota // code, arguments, questions: the client's transcript has them too
	output               // of the code
	answer               // of servers
)

func (k Keep) keeps(s source) bool {
	return k == KeepAll || k == KeepArguments && s != answer
}

// A Text is what code, a user or a server wrote. The entry has its size and its digest, which is
// salted: SHA-256(salt ‖ text), with one salt of 16 random bytes for each run, so that equal
// texts of a run have equal digests, and a digest says nothing once the salt is forgotten. The
// text itself, or what is kept of it, stands in the file of values.
type Text struct {
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	// Kept is how many bytes are kept. If that is not the text as it was, KeptSHA256 is the digest
	// of what is kept, Cut counts the bytes that were left out, and Hidden names the rules by which
	// some were blacked out.
	Kept       int      `json:"kept,omitzero"`
	KeptSHA256 string   `json:"keptSHA256,omitzero"`
	Cut        int64    `json:"cut,omitzero"`
	Hidden     []string `json:"hidden,omitzero"`

	head, tail []byte // what may be kept, more than will be; tail is nil unless there is a gap
	streamed   bool   // Size and SHA256 are those of a Stream
}

// TextOf returns a Text to write. Append makes its digest; until then s must stay as it is.
func TextOf[S ~string | ~[]byte](s S) Text {
	return Text{Size: int64(len(s)), head: []byte(s)}
}

// margin is how much more than will be kept is looked at for secrets, which the cut might go
// through.
const margin = 4 << 10

// A Stream makes a Text of what is written to it, and keeps the head and the tail. It is not safe
// for concurrent use.
type Stream struct {
	sum        hash.Hash
	size       int64
	window     int
	head, tail []byte
}

// NewStream returns a Stream for a Text of this run.
func (r *Run) NewStream() *Stream {
	if r == nil {
		return nil
	}
	s := &Stream{sum: sha256.New(), window: r.j.o.MaxValue/2 + margin}
	s.sum.Write(r.salt[:])
	return s
}

// Write never fails. A nil Stream takes nothing in.
func (s *Stream) Write(p []byte) (int, error) {
	if s == nil {
		return len(p), nil
	}
	s.sum.Write(p)
	s.size += int64(len(p))
	n := min(len(p), s.window-len(s.head))
	s.head = append(s.head, p[:n]...)
	rest := p[n:]
	if len(rest) >= s.window {
		s.tail = append(s.tail[:0], rest[len(rest)-s.window:]...)
		return len(p), nil
	}
	if len(s.tail)+len(rest) > 2*s.window { // seldom: what goes on is moved to the front
		s.tail = s.tail[:copy(s.tail, s.tail[len(s.tail)+len(rest)-s.window:])]
	}
	s.tail = append(s.tail, rest...)
	return len(p), nil
}

// Text returns what was written so far as the Text of an entry of the same run.
func (s *Stream) Text() Text {
	if s == nil || s.size == 0 {
		return Text{}
	}
	t := Text{Size: s.size, SHA256: hex.EncodeToString(s.sum.Sum(nil)), streamed: true, head: slices.Clone(s.head)}
	if s.size == int64(len(s.head)+len(s.tail)) {
		t.head = append(t.head, s.tail...)
	} else {
		t.tail = slices.Clone(s.tail[max(0, len(s.tail)-s.window):])
	}
	return t
}

// EndOf returns the end of what code is printing, max bytes at most and without secrets, as it would
// be on record, and how much it leaves out before that. A nil Run returns nothing.
func (r *Run) EndOf(printed []byte, max int) (end string, before int64) {
	if r == nil {
		return "", 0
	}
	e := excerpt{hider: r.j.hider, most: max}
	end = e.tail(wholeRunes(printed), max)
	return end, e.cut
}

// A Value is what is kept of a Text: a line of the file of values.
type Value struct {
	Run   string `json:"run,omitzero"`
	Seq   uint64 `json:"seq,omitzero"` // of the entry
	Field string `json:"field"`        // of the entry, such as code
	Salt  string `json:"salt"`         // of the run: 16 bytes in hexadecimal
	Value string `json:"value"`
	Tail  string `json:"tail,omitzero"` // the end, if bytes between were left out
}

// IsOf reports whether v is what was kept of a text.
func (v *Value) IsOf(t *Text) bool {
	salt, err := hex.DecodeString(v.Salt)
	if err != nil {
		return false
	}
	h := sha256.New()
	for _, part := range [][]byte{salt, []byte(v.Value), []byte(v.Tail)} {
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)) == cmp.Or(t.KeptSHA256, t.SHA256)
}
