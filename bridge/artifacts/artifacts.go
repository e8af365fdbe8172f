// Package artifacts keeps the output of runs besides text: files in
// /workspace/out, pictures, and streams that are too long for a result. A Run
// collects them, and a Store keeps them as MCP resources until they expire.
//
// It promises that no name or link made by hostile code leads outside its run's
// folder, and that the files of one run stay within 128 MiB, not counting its streams.
// It does not judge the content of a file.
package artifacts

import (
	"context"
	"os"
	"sync"
)

// A Collector collects the artifacts of one run: pictures as they are displayed,
// streams that are too long for the result, and at the end the files in
// /workspace/out. Its methods may be called at the same time until Finish. The run's
// folder is created with the first file.
type Collector struct {
	store    *Store
	pictures *pictures

	mu      sync.Mutex
	id      string
	dir     string // that is being filled
	parts   int
	size    int64
	kept    []keptFile
	notes   []string
	private []string // as SetPrivate
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
func (s *Store) NewCollector(ctx context.Context, id string) *Collector {
	c := &Collector{store: s, id: id}
	c.pictures = c.startPictures(ctx)
	return c
}

// Finish waits for the pictures, makes the run's folder visible and returns its
// content. Nothing may be added afterwards.
func (c *Collector) Finish() Published {
	c.pictures.finish()
	c.addPictureNotes()
	left := c.publish()
	left.Pictures = c.pictures.shown()
	return left
}

// Discard removes everything that Finish has not published.
func (c *Collector) Discard() {
	c.pictures.finish()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != "" {
		_ = os.RemoveAll(c.dir) // if it fails, clean removes the folder when it is old
	}
}
