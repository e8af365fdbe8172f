package history

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolcell/toolcell/bridge/record"
)

// A chain is how far a file was read.
type chain struct {
	name string
	line int    // the last whole line
	prev string // its hash
	seq  uint64 // of the last entry
	torn int    // bytes of the last line if it is no entry

	newer  bool // a newer toolcell wrote to it
	unread bool // the last line is of a newer toolcell

	lost      int // entries that were not written
	tornLines int
}

// chain reads a file of entries and calls each for each of them.
func (v *verifier) chain(name string, each func(c *chain, h record.Header, e record.Entry, line []byte)) (*chain, error) {
	f, err := v.record.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &chain{name: name, prev: record.FirstPrev(name).String()}
	for lines := record.NewLines(f); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		h, err := record.ReadHeader(line.Text)
		if newer, ok := errors.AsType[*record.VersionError](err); ok {
			v.passOver(c, line, newer)
			continue
		}
		if err != nil && line.Rest {
			v.note(name, line.Number, "the last line is torn")
			break
		}
		var e record.Entry
		if err == nil {
			v.report.Entries++
			e = entryToVerify(h, line.Text)
		}
		v.follow(c, line, h, e)
		v.compareHeads(c)
		if err == nil {
			each(c, h, e, line.Text)
		}
	}
	if c.torn > 0 {
		v.problem(name, c.line, notEntry)
	}
	v.noteLost(c)
	v.cutHeads(c)
	return c, nil
}

// passOver takes in a line of a newer toolcell, which may say anything.
func (v *verifier) passOver(c *chain, line record.Line, newer *record.VersionError) {
	if !c.newer {
		v.note(c.name, line.Number, "%v", newer)
	}
	c.line, c.prev, c.torn = line.Number, record.HashOf(line.Text).String(), 0
	c.newer, c.unread = true, true
	v.compareHeads(c)
}

// noteLost says how much of a file was not written.
func (v *verifier) noteLost(c *chain) {
	var all []string
	if c.lost > 0 {
		all = append(all, counted(c.lost, "entry was", "entries were")+" not written")
	}
	if c.tornLines > 0 {
		all = append(all, counted(c.tornLines, "line is", "lines are")+" torn")
	}
	if all != nil {
		v.note(c.name, 0, "%s", strings.Join(all, ", "))
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxLost bounds the sum of what entries say is lost.
const maxLost = 1 << 30

// entryToVerify decodes an entry if its members matter here. The others are verified by their hash.
func entryToVerify(h record.Header, line []byte) record.Entry {
	switch h.Kind {
	case record.KindTorn, record.KindDayBegin, record.KindFileBegin, record.KindFileEnd, record.KindDayRemoved:
		e, _ := record.ReadEntry(h, line)
		return e
	}
	return nil
}

const notEntry = "this line is not a valid entry"

// follow looks whether a line, which without a header is no entry, follows the one before.
func (v *verifier) follow(c *chain, line record.Line, h record.Header, e record.Entry) {
	before := *c
	c.line, c.prev, c.torn = line.Number, record.HashOf(line.Text).String(), 0
	t, ok := e.(*record.Torn)
	if before.torn > 0 && (!ok || t.Bytes != before.torn) {
		v.problem(c.name, before.line, notEntry)
	}
	if ok {
		c.lost += max(0, min(t.Lost, maxLost-c.lost))
		if before.torn > 0 {
			c.tornLines++
		}
	}
	if h.Seq == 0 {
		c.torn = len(line.Text)
		return
	}
	c.seq, c.unread = h.Seq, false
	switch {
	case !before.unread && h.Seq != before.seq+1:
		v.problem(c.name, c.line, "entries are missing or moved: seq %d follows %d", h.Seq, before.seq)
	case h.Prev == before.prev:
	case c.line == 1:
		v.problem(c.name, c.line, "the file was moved, or its beginning removed")
	default:
		v.problem(c.name, before.line, "the line was changed: line %d has another hash of it", c.line)
	}
}
