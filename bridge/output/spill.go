package output

import (
	"errors"
	"os"

	"github.com/toolcell/toolcell/internal/text"
)

// maxOverflow bounds the file that keeps a stream, in bytes.
const maxOverflow = 64 << 20

// A Spilled is a file that holds a stream.
type Spilled struct {
	Path string // where it is now
	Name string // its final name
	Size int64
}

// An overflow keeps a stream that is too long for the result in a file. The
// file is created when the stream exceeds the limit. A nil overflow keeps
// nothing.
type overflow struct {
	create func() (*os.File, error)
	name   string

	file *os.File
	size int64
	cut  bool  // the stream had more
	err  error // why it is not kept, or not further
	uri  string
}

func (o *overflow) write(parts ...[]byte) {
	if o.file == nil && o.err == nil {
		o.file, o.err = o.create()
	}
	for _, p := range parts {
		if room := maxOverflow - o.size; int64(len(p)) > room {
			p, o.cut = p[:room], true
		}
		if o.err != nil || len(p) == 0 {
			continue
		}
		var n int
		n, o.err = o.file.Write(p)
		o.size += int64(n)
	}
}

// finish ends the file of a stream that has not fitted, or does not fit into a result
// with so much room.
func (c *capture) finish(room int, keep func(k Spilled, named func(uri string))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole != nil && c.total <= c.limit() {
		if head, tail, _ := c.kept(); !c.fits(roomFor(room, head, tail)) {
			c.whole.write(head, tail)
		}
	}
	c.whole.finish(keep)
}

// finish passes the file to keep, which calls named once it has a URI. The
// stream has ended.
func (o *overflow) finish(keep func(k Spilled, named func(uri string))) {
	if o == nil || o.file == nil {
		return
	}
	if err := errors.Join(o.err, o.file.Close()); err != nil {
		o.err = errors.Join(err, os.Remove(o.file.Name()))
		return
	}
	keep(Spilled{Path: o.file.Name(), Name: o.name, Size: o.size}, func(uri string) { o.uri = uri })
}

// said says where the stream is, for the line that says that it was cut.
func (o *overflow) said() string {
	switch {
	case o == nil:
		return ""
	case o.err != nil:
		return "; it could not be kept: " + o.err.Error()
	case o.uri == "":
		return ""
	case o.cut:
		return "; the first " + text.Size(maxOverflow) + " of all: " + o.uri
	}
	return "; all of it: " + o.uri
}
