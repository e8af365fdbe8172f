package console

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Filter passes text of untrusted code on to a terminal, as it comes. Of all
// that a terminal would obey only colors, tabs, line ends and carriage returns
// pass: other sequences set the clipboard and the title, hide earlier lines, or
// make the terminal type an answer, which the shell would read. What passes is
// UTF-8, so that no terminal decodes a control character from bytes that are not.
type Filter struct {
	w   io.Writer
	all bool // passes: it is no terminal

	mu      sync.Mutex
	state   filterState
	params  []byte // of the control sequence that has begun, at most maxParams+1
	half    []byte // the beginning of a character
	colored bool   // the text below is
}

// A filterState says which part of a sequence (ECMA-48) comes next.
type filterState int

const (
	inText filterState = iota
	inEscape
	inControl // CSI: parameters, then one letter
	inString  // OSC, DCS, APC, PM, SOS: anything up to ST or BEL
)

// maxParams bounds the parameters of a color, in bytes. Colors have about 20.
const maxParams = 64

// NewFilter returns a Filter that writes to w what may go to f. If f is no
// terminal, everything may.
func NewFilter(f *os.File, w io.Writer) *Filter { return &Filter{w: w, all: !Terminal(f)} }

// Filtered returns the part of a text that may go to f: all of it unless f is a terminal.
func Filtered(f *os.File, s string) string {
	var b strings.Builder
	filter := NewFilter(f, &b)
	_, _ = io.WriteString(filter, s) // a Builder takes everything
	return b.String() + string(filter.End())
}

// Write implements io.Writer. A sequence or character may be split among calls.
func (f *Filter) Write(p []byte) (int, error) {
	if f.all {
		return f.w.Write(p)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	in := slices.Concat(f.half, p)
	out := make([]byte, 0, len(in))
	for len(in) > 0 && utf8.FullRune(in) {
		r, n := utf8.DecodeRune(in)
		out, in = f.add(out, r), in[n:]
	}
	f.half = bytes.Clone(in)
	if len(out) == 0 {
		return len(p), nil
	}
	_, err := f.w.Write(out)
	return len(p), err
}

// End returns what has to be written after the text: it turns off colors that the
// text left on. The Filter is as new then.
func (f *Filter) End() (rest []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.half) > 0 {
		rest = utf8.AppendRune(rest, utf8.RuneError)
	}
	if f.colored {
		rest = append(rest, "\x1b[0m"...)
	}
	f.state, f.half, f.colored = inText, nil, false
	return rest
}

// add appends to out what may pass once r has come.
func (f *Filter) add(out []byte, r rune) []byte {
	switch r {
	case '\x1b':
		f.state = inEscape
		return out
	case '\u009b':
		return f.begin(out, '[')
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f':
		f.state = inString
		return out
	}
	switch {
	case f.state == inEscape && r >= ' ' && r <= '~':
		return f.begin(out, r)
	case f.state == inControl && r >= ' ' && r <= '~':
		return f.addControl(out, byte(r))
	case f.state == inString && !endsString(r):
		return out
	}
	// A control character, such as CAN, and any character that is not ASCII ends a
	// sequence; terminals differ in what they do then.
	f.state = inText
	return appendText(out, r)
}

// begin decides what the character after ESC begins.
func (f *Filter) begin(out []byte, kind rune) []byte {
	switch {
	case kind == '[':
		f.state, f.params = inControl, f.params[:0]
	case strings.ContainsRune("]P_^X", kind):
		f.state = inString
	case kind >= '0': // the end of a sequence; what is before has further characters
		f.state = inText
	}
	return out
}

// addControl reads a character of a control sequence. If that completes a color
// (Select Graphic Rendition), it appends the sequence to out.
func (f *Filter) addControl(out []byte, c byte) []byte {
	if c < '@' {
		if len(f.params) <= maxParams {
			f.params = append(f.params, c)
		}
		return out
	}
	f.state = inText
	params := string(f.params)
	// With < = > ? or a space before it, m is another command of xterm's.
	if c != 'm' || len(params) > maxParams || strings.Trim(params, "0123456789;:") != "" {
		return out
	}
	f.colored = strings.Trim(params, "0;") != ""
	return append(append(append(out, "\x1b["...), params...), 'm')
}

// endsString reports whether r ends a string of a terminal's. A line end should
// not, but a string that never ends would swallow all further output.
func endsString(r rune) bool {
	return r == '\a' || r == '\n' || r == '\x18' || r == '\x1a' || r == '\u009c'
}

// appendText appends a character unless it is a control character with another
// effect than to end a line or to go back to its start, as progress bars do.
func appendText(out []byte, r rune) []byte {
	if r != '\n' && r != '\t' && r != '\r' && (r < ' ' || r >= '\x7f' && r <= '\u009f') {
		return out
	}
	return utf8.AppendRune(out, r)
}
