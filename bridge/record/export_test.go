package record

import (
	"io"
	"time"
)

// WithClock and WithFiles are Options for tests.
func (o Options) WithClock(now func() time.Time) Options {
	o.now = now
	return o
}

func (o Options) WithFiles(wrap func(io.Writer) io.Writer) Options {
	o.wrap = wrap
	return o
}
