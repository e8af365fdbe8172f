package run

import (
	"io"
	"os"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
)

// maxPrinted bounds a stream that the next run of a session can read, in bytes: it
// takes room in the sandbox's /tmp.
const maxPrinted = 32 << 20

// previousOutput are the streams of a session's last run that were too long for its result, by
// the name of their file. They stay open, since the kept files may be removed meanwhile.
type previousOutput map[string]*os.File

// keep opens the file of a stream, and returns where the next run finds it; "" if
// it is too long.
func (p previousOutput) keep(stream output.Spilled) (path string) {
	if stream.Size > maxPrinted {
		return ""
	}
	file, err := os.Open(stream.Path)
	if err != nil {
		return ""
	}
	p[stream.Name] = file
	return runner.PrintedDir + "/" + stream.Name
}

// names returns the names of the files.
func (p previousOutput) names() (names []string) {
	for name := range p {
		names = append(names, name)
	}
	return names
}

// readers returns what hostapi reads them from.
func (p previousOutput) readers() map[string]io.ReaderAt {
	readers := map[string]io.ReaderAt{}
	for name, file := range p {
		readers[name] = file
	}
	return readers
}

func (p previousOutput) close() {
	for _, file := range p {
		file.Close()
	}
	clear(p)
}

// collectStreams keeps the streams of a run that were too long for its result. If the
// session continues, its next run can read them too.
func (in *interpreter) collectStreams(files *artifacts.Collector, continues bool) {
	in.previous.close()
	in.pipes.Finish(func(s output.Spilled, named func(where string)) {
		path := ""
		if continues {
			path = in.previous.keep(s)
		}
		files.AddStream(s.Path, s.Name, s.Size, func(uri string) {
			if path != "" {
				uri += ", and in the next run of this session " + path
			}
			named(uri)
		})
	})
}
