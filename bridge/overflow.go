package bridge

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// maxOverflow bounds what is kept of a stream as a file, in bytes.
const maxOverflow = 64 << 20

// An overflow keeps a stream as a file that is too long for the result. It is
// begun when that is known. A nil one keeps nothing.
type overflow struct {
	files *runFiles
	name  string

	file *os.File
	size int64
	cut  bool  // the stream had more
	err  error // why it is not kept, or not further
	uri  string
}

func (o *overflow) write(parts ...[]byte) {
	if o.file == nil && o.err == nil {
		o.file, o.err = o.files.create()
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

// finish hands the file over. The stream has ended.
func (o *overflow) finish() {
	if o == nil || o.file == nil {
		return
	}
	if err := errors.Join(o.err, o.file.Close()); err != nil {
		o.err = errors.Join(err, os.Remove(o.file.Name()))
		return
	}
	o.files.add(keptFile{part: filepath.Base(o.file.Name()), name: o.name, ours: true, size: o.size, named: func(_, uri string) bool {
		o.uri = uri
		return true
	}})
}

// said says where the stream is, for the note that it was cut.
func (o *overflow) said() string {
	switch {
	case o == nil || errors.Is(o.err, errNoFolder):
		return ""
	case o.err != nil:
		return ", which could not be kept: " + o.err.Error()
	case o.uri == "":
		return ""
	case o.cut:
		return ", the first " + text.Size(maxOverflow) + " of them in " + o.uri
	}
	return ", all of them in " + o.uri
}
