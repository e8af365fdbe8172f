package history

import (
	"bytes"
	"encoding/json/jsontext"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// A scanned line is one of which only the header was looked at, since most lines are of no interest.
type scanned struct {
	kind record.Kind
	run  []byte
	when []byte
	rest []byte // the entry's own members
	line []byte
}

// The parts of a header between what differs, as record writes them.
const (
	head0 = `{"v":1,"seq":`
	head1 = `,"prev":"`
	head2 = `","time":"`
	head3 = `","kind":"`
	head4 = `,"run":"`
)

const (
	hashLength = 64
	timeLength = len("2026-11-28T08:30:00.000000000Z")
)

// scan looks at the header of a line. It returns false for a line that is no entry. Lines as record
// writes them are not decoded.
func scan(line []byte) (s scanned, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(head0))
	if !ok {
		return scanSlow(line)
	}
	rest = bytes.TrimLeft(rest, "0123456789")
	fixed := len(head1) + hashLength + len(head2) + timeLength + len(head3)
	if len(rest) < fixed || string(rest[:len(head1)]) != head1 {
		return scanSlow(line)
	}
	rest = rest[len(head1)+hashLength:]
	if string(rest[:len(head2)]) != head2 {
		return scanSlow(line)
	}
	s.when = rest[len(head2) : len(head2)+timeLength]
	rest = rest[len(head2)+timeLength:]
	if string(rest[:len(head3)]) != head3 || line[len(line)-1] != '}' {
		return scanSlow(line)
	}
	kind, rest, _ := bytes.Cut(rest[len(head3):], []byte{'"'})
	s.kind, s.line, s.rest = kindOf(kind), line, rest
	if run, ok := bytes.CutPrefix(rest, []byte(head4)); ok {
		s.run, s.rest, _ = bytes.Cut(run, []byte{'"'})
	}
	return s, len(s.run) <= record.MaxID && len(s.kind) <= record.MaxID
}

// kindOf makes no new string of a kind that is known.
func kindOf(b []byte) record.Kind {
	switch record.Kind(b) {
	case record.KindCallStart:
		return record.KindCallStart
	case record.KindCallEnd:
		return record.KindCallEnd
	}
	return record.Kind(b)
}

// scanSlow decodes the header of a line that has another form.
func scanSlow(line []byte) (scanned, bool) {
	h, err := record.ReadHeader(line)
	if err != nil {
		return scanned{}, false
	}
	return scanned{kind: h.Kind, run: []byte(h.Run), when: h.Time.AppendFormat(nil, time.RFC3339Nano), rest: line, line: line}, true
}

func (s *scanned) time() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, string(s.when))
	return t
}

// text returns the value of a member of the entry that is a string. Name is with the quotes, colon
// and opening quote. Of one that is longer than those of record it is the beginning.
func (s *scanned) text(name string) []byte {
	at := bytes.Index(s.rest, []byte(name))
	if at < 0 {
		return nil
	}
	value := s.rest[at+len(name):]
	end, escaped := 0, false
	for ; end < len(value) && value[end] != '"'; end++ {
		if value[end] == '\\' {
			escaped = true
			end++
		}
	}
	if end = min(end, len(value)); !escaped {
		return value[:min(end, maxText)]
	}
	decoded, _ := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, value[:end]...), '"'))
	return decoded[:min(len(decoded), maxText)]
}

// maxText is how long a name on record is at most.
const maxText = 256

// number returns the value of a member that is a number, record.MaxNumber at most and 0 if there is
// none or it is negative. Name is with the quotes
// and the colon.
func (s *scanned) number(name string) int64 {
	at := bytes.Index(s.rest, []byte(name))
	if at < 0 {
		return 0
	}
	value := s.rest[at+len(name):]
	end := len(value) - len(bytes.TrimLeft(value, "0123456789"))
	n, _ := strconv.ParseInt(string(value[:end]), 10, 64) // of one that is too large the largest
	return min(n, record.MaxNumber)
}

// writes reports whether a call may change something.
func (s *scanned) writes() bool { return bytes.Contains(s.rest, []byte(`"writes":true`)) }
