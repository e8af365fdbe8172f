// Package artifacts keeps the output of runs besides text: files in
// /workspace/out, pictures, and streams that are too long for a result. A Run
// collects them, and a Store keeps them as MCP resources until they expire.
//
// It promises that no name or link made by hostile code leads outside its run's
// folder, and that the files of one run stay within 128 MiB. It does not judge
// the content of a file.
package artifacts

import (
	"context"
	"os"
)

// A Collector collects the artifacts of one run: pictures as they are displayed,
// streams that are too long for the result, and at the end the files in
// /workspace/out. Its methods may be called at the same time until Finish.
type Collector struct {
	files    runFiles
	pictures *pictures
}

// A Published lists the artifacts of a run once they are on disk.
type Published struct {
	Folder   string // where the files are on this host; empty if there are none
	Files    []File
	Pictures []Picture // that the result shows
	Notes    []string  // for the caller: which files were left out, and why
}

// NewCollector begins to collect the artifacts of one run. Pictures that are not decoded
// when ctx ends are left out of the result. The caller must call Discard.
func (s *Store) NewCollector(ctx context.Context) *Collector {
	r := &Collector{files: runFiles{store: s}}
	r.pictures = s.startPictures(ctx, &r.files)
	return r
}

// Create makes a file for a stream that is too long for the result. Its error is
// ErrNoFolder if no files are kept here.
func (r *Collector) Create() (*os.File, error) { return r.files.create() }

// AddStream adds a stream that was written to a file from Create, under the
// given name. It calls named with the file's URI once there is one.
func (r *Collector) AddStream(file, name string, size int64, named func(uri string)) {
	r.files.addStream(file, name, size, named)
}

// Collect copies the files in /workspace/out that are new or changed since the
// last call for this workspace. A file that cannot be kept becomes a note.
func (r *Collector) Collect(w *Workspace) { r.files.collect(w) }

// Display adds a picture. A raster format is decoded and scaled for the result
// while the code runs; SVG is kept as a file. rasterFollows says that an SVG's
// raster form is displayed too, or that the code knows why there is none. The
// error is for the code: the data is not a picture, or there are too many.
func (r *Collector) Display(name string, data []byte, rasterFollows bool) error {
	return r.pictures.display(name, data, rasterFollows)
}

// SetPrivate notes with the files what was read from private servers before they were
// written; Store.Private gives it back.
func (r *Collector) SetPrivate(reads []string) { r.files.setPrivate(reads) }

// Finish waits for the pictures, makes the run's folder visible and returns its
// content. Nothing may be added afterwards.
func (r *Collector) Finish() Published {
	r.pictures.finish()
	r.pictures.addNotes()
	left := r.files.publish()
	left.Pictures = r.pictures.shown()
	return left
}

// Discard removes everything that Finish has not published.
func (r *Collector) Discard() {
	r.pictures.finish()
	r.files.discard()
}
