package record

import "io"

// WithFiles puts something in place of the files that entries are written to.
func (o Options) WithFiles(wrap func(io.Writer) io.Writer) Options {
	o.wrap = wrap
	return o
}

// Kill closes the files as the kernel does when it ends a process.
func (j *Journal) Kill() {
	j.later.Wait()
	j.segment.file.Close()
}
