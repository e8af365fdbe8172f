// Package artifacts keeps what runs leave besides text: files in /workspace/out,
// pictures, and streams that are too long for a result. A Run takes them in, and
// a Store keeps them as MCP resources until they are old.
//
// It promises that no name or link that hostile code makes leads outside of the
// folder of its run, and that the files of one run stay within 128 MiB. It does
// not judge the content of a file.
package artifacts

import (
	"os"
)

// A Run takes in what one run leaves: pictures as they are displayed,
// streams that are too long for the result, and at the end the files in
// /workspace/out. Its methods may be called at the same time until Finish.
type Run struct {
	files    runFiles
	pictures pictures
}

// A Published is what a run has left, once it is on the disk.
type Published struct {
	Folder   string // where the files are on this host; empty if there are none
	Files    []File
	Pictures []Picture // that the result shows
	Notes    []string  // for the caller: what was left out, and why
}

// NewRun begins to take in what one run leaves. The run has to be discarded.
func (s *Store) NewRun() *Run {
	r := &Run{files: runFiles{store: s}}
	r.pictures = pictures{store: s, files: &r.files}
	return r
}

// Create makes a file for a stream that is too long for the result. Its error is
// ErrNoFolder if no files are kept here.
func (r *Run) Create() (*os.File, error) { return r.files.create() }

// AddStream takes in a stream that was written to a file of Create, as the file
// name. It calls named with the file's URI once there is one.
func (r *Run) AddStream(file, name string, size int64, named func(uri string)) {
	r.files.addStream(file, name, size, named)
}

// Collect takes in the files in /workspace/out that are new since the last call
// for this workspace, or have changed. Whatever cannot be kept becomes a note.
func (r *Run) Collect(w *Workspace) { r.files.collect(w) }

// Display takes in a picture. A raster format is decoded and made fit for the
// result while the code goes on; SVG is kept as a file. rasterFollows says of an
// SVG picture that its raster form is displayed too, or that the code has been
// told why there is none. The error is for the code: it gave no picture, or too
// many.
func (r *Run) Display(name string, data []byte, rasterFollows bool) error {
	return r.pictures.display(name, data, rasterFollows)
}

// Finish waits for the pictures, makes the run's folder visible, and returns what
// there is. Nothing may be added any more.
func (r *Run) Finish() Published {
	r.pictures.wait()
	left := r.files.publish()
	left.Pictures = r.pictures.shown()
	return left
}

// Discard removes what Finish has not published.
func (r *Run) Discard() {
	r.pictures.rendering.Wait()
	r.files.discard()
}
