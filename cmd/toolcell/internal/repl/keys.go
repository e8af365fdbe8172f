package repl

import (
	"bytes"
	"io"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// keys are what comes from a terminal with bracketed paste, on its way to the
// editor. A paste arrives there as if it was typed, without keys that do something;
// keys keep in mind which line ends were pasted.
type keys struct {
	typed   func() // called for what comes
	pasting bool
	text    bool   // the line that is being pasted has some
	blank   bool   // what was pasted last is an empty line
	last    byte   // that was pasted
	held    []byte // the beginning of a mark, at the end of what was read

	mu   sync.Mutex
	ends []bool // of lines that the editor has not given yet: pasted or not
}

// The marks around a paste.
var pasteBegin, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// copy passes on keys until either end is gone.
func (k *keys) copy(w io.WriteCloser, r io.Reader) {
	defer contain.Recover("reading keys", nil)
	defer w.Close()
	b := make([]byte, 4096)
	for {
		n, err := r.Read(b)
		if err != nil {
			return
		}
		k.typed()
		if _, err := w.Write(k.pass(b[:n])); err != nil {
			return
		}
	}
}

// pass returns what the editor gets of some keys.
func (k *keys) pass(in []byte) (out []byte) {
	in = append(k.held, in...)
	k.held = nil
	for len(in) > 0 {
		mark := pasteBegin
		if k.pasting {
			mark = pasteEnd
		}
		if bytes.HasPrefix(in, mark) {
			in = in[len(mark):]
			k.switchPasting()
			continue
		}
		// A lone Escape is a key; in a paste it is nothing.
		if len(in) < len(mark) && (k.pasting || len(in) > 1) && bytes.HasPrefix(mark, in) {
			k.held = bytes.Clone(in)
			return out
		}
		out = k.add(out, in[0])
		in = in[1:]
	}
	return out
}

// switchPasting begins or ends a paste. An empty line at its end is meant as one.
func (k *keys) switchPasting() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.ends); k.pasting && k.blank && n > 0 {
		k.ends[n-1] = false
	}
	k.pasting, k.text, k.blank, k.last = !k.pasting, false, false, 0
}

// add passes on one byte.
func (k *keys) add(out []byte, c byte) []byte {
	end := c == '\r' || c == '\n'
	if k.pasting {
		before := k.last
		k.last = c
		if c == '\n' && before == '\r' {
			return out
		}
		k.blank = end && !k.text
		k.text = !end && (k.text || c > ' ')
	}
	switch {
	case end:
		k.mu.Lock()
		k.ends = append(k.ends, k.pasting)
		k.mu.Unlock()
	case !k.pasting:
	case c == '\t':
		return append(out, "    "...)
	case c < ' ' || c == 0x7f:
		return out
	}
	return append(out, c)
}

// lineEnd reports whether the end of the line that the editor has given was pasted.
func (k *keys) lineEnd() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ends) == 0 {
		return false
	}
	pasted := k.ends[0]
	k.ends = k.ends[1:]
	return pasted
}
