package record

import "io"

// WithFiles puts something in place of the files that entries are written to.
func (o Options) WithFiles(wrap func(io.Writer) io.Writer) Options {
	o.wrap = wrap
	return o
}
