package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on the pictures that one run may display.
const (
	maxDisplayed = 64
	maxPicture   = 32 << 20 // bytes of one, as it was given
	maxPixelated = 64 << 20 // bytes of all
	maxUnkept    = 8 << 20  // bytes of those that are not kept as files, and so wait in memory
)

// A Picture is sent to the client along with the text.
type Picture struct {
	Name   string `json:"name"`
	Type   string `json:"type"`          // media type
	Width  int    `json:"width"`         // in pixels
	Height int    `json:"height"`        // in pixels
	URI    string `json:"uri,omitempty"` // of the picture as the code gave it
	Data   []byte `json:"-"`             // encoded as Type says
}

// pictures are the pictures of one run. They are decoded while the code runs.
type pictures struct {
	queue   chan *displayed // to be decoded; has room for all
	closing sync.Once       // of queue
	decoded chan struct{}   // closed when all are

	mu     sync.Mutex
	all    []*displayed
	toShow int // of them, in the result
	bytes  int
	unkept int // bytes
}

// A displayed is a picture that the code gave to display.
type displayed struct {
	name, uri string
	file      string // that it is read from when it is decoded
	data      []byte // it is read from here instead, if it is not kept as a file
	rendered  imaging.Rendered
	show      bool  // it is among those that the result shows
	err       error // why it is not, all the same
	keepErr   error // why it is not kept as a file
}

// startPictures begins to decode what Display is given, one picture after the
// other. What is not decoded when ctx ends is not shown.
func (c *Collector) startPictures(ctx context.Context) *pictures {
	p := &pictures{queue: make(chan *displayed, maxDisplayed), decoded: make(chan struct{})}
	go func() {
		defer close(p.decoded)
		defer contain.Recover("decoding the pictures of a run", nil)
		renderer := c.store.decoders.NewRenderer()
		for d := range p.queue {
			d.err = contain.Call("decoding a picture", func() (err error) {
				d.rendered, err = d.render(ctx, renderer)
				return err
			})
			d.data = nil
		}
	}()
	return p
}

// Display adds a picture. A raster format is decoded and scaled for the result
// while the code runs; SVG is kept as a file. rasterFollows says that an SVG's
// raster form is displayed too, or that the code knows why there is none. The
// error is for the code: the data is not a picture, or there are too many.
func (c *Collector) Display(name string, data []byte, rasterFollows bool) error {
	d, err := c.pictures.admit(name, data, c.store.decoders.Limits.Count)
	if err != nil {
		return err
	}
	d.file, d.keepErr = c.keep(keptFile{name: d.name, generated: true, named: d.named}, bytes.NewReader(data))
	switch {
	case d.show:
		c.pictures.enqueue(d, data)
	case !strings.HasSuffix(d.name, ".svg"):
	case errors.Is(d.keepErr, ErrNoFolder): // of other reasons addPictureNotes tells
		c.addNote("SVG picture %q could not be kept: %v", d.name, d.keepErr)
	case d.keepErr == nil && !rasterFollows:
		c.addNote("SVG picture %q is kept as a file and not shown: the image has no cairosvg, which makes PNG of it", d.name)
	}
	return nil
}

// enqueue has a picture decoded when it is its turn. Until then it waits as a file:
// a run can display 64 MiB. If it could not be kept as one, it waits in memory, where
// there is room for less.
func (p *pictures) enqueue(d *displayed, data []byte) {
	if d.keepErr != nil {
		if !p.hold(len(data)) {
			d.err = fmt.Errorf("pictures that are not kept as files can have %s in all", text.Size(maxUnkept))
			return
		}
		d.data = data
	}
	p.queue <- d
}

// hold reports whether a picture may wait in memory, and counts it then.
func (p *pictures) hold(size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unkept+size > maxUnkept {
		return false
	}
	p.unkept += size
	return true
}

// render decodes a picture and encodes it anew.
func (d *displayed) render(ctx context.Context, r *imaging.Renderer) (imaging.Rendered, error) {
	if d.keepErr != nil {
		return r.Render(ctx, bytes.NewReader(d.data))
	}
	file, err := os.Open(d.file)
	if err != nil {
		return imaging.Rendered{}, err
	}
	defer file.Close() // if the run has ended, a decoder may still be reading; it fails then
	return r.Render(ctx, file)
}

// admit counts a picture, unless there are too many or the data is not a
// picture. The result shows at most the first most of them.
func (p *pictures) admit(name string, data []byte, most int) (*displayed, error) {
	stem := plainName(name)
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	d := &displayed{name: stem + ".svg"}
	if format, ok := imaging.Formats[http.DetectContentType(data)]; ok {
		d.name = stem + format.Ext
	} else if !strings.HasSuffix(strings.ToLower(name), ".svg") {
		return nil, fmt.Errorf("displaying %q: its bytes are neither PNG, JPEG, GIF nor WebP", text.Bound(name, 80))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.all) >= maxDisplayed:
		return nil, fmt.Errorf("displaying %q: a run can display %d pictures; save others in /workspace/out", d.name, maxDisplayed)
	case len(data) > maxPicture || p.bytes+len(data) > maxPixelated:
		return nil, fmt.Errorf("displaying %q: it has %s; a picture can have %s and all of a run %s", d.name, text.Size(int64(len(data))), text.Size(maxPicture), text.Size(maxPixelated))
	}
	if d.show = p.toShow < most && !strings.HasSuffix(d.name, ".svg"); d.show {
		p.toShow++
	}
	p.all = append(p.all, d)
	p.bytes += len(data)
	return d, nil
}

// named records the name of the picture's file. The file is listed unless the
// result shows the picture in full.
func (d *displayed) named(name, uri string) bool {
	d.name, d.uri = name, uri
	return !d.show || d.err != nil || d.rendered.Reduced
}

// finish ends the queue, and waits until all pictures in it are decoded.
func (p *pictures) finish() {
	p.closing.Do(func() { close(p.queue) })
	<-p.decoded
}

// addPictureNotes adds notes about the pictures that the result does not show, for those
// left out by bounds on all of a run one note for each bound.
func (c *Collector) addPictureNotes() {
	p, shown := c.pictures, c.store.decoders.Limits
	p.mu.Lock()
	defer p.mu.Unlock()
	late, large, over, lost := 0, 0, 0, 0
	for _, d := range p.all {
		switch {
		case errors.Is(d.err, imaging.ErrTime):
			late++
		case errors.Is(d.err, imaging.ErrPixels):
			large++
		case d.err != nil && !errors.Is(d.err, context.Canceled): // the result says that the run was cancelled
			c.addNote("picture %q cannot be shown: %v", d.name, d.err)
		case d.show || strings.HasSuffix(d.name, ".svg"):
		case d.keepErr != nil:
			lost++
		default:
			over++
		}
		if d.keepErr != nil && !errors.Is(d.keepErr, ErrNoFolder) {
			c.addNote("picture %q could not be kept as a file: %v", d.name, d.keepErr)
		}
	}
	c.noteLeftOut(late, "decoding took too long")
	c.noteLeftOut(large, fmt.Sprintf("the pictures of a run can have %d million pixels in all", shown.Pixels>>20))
	beyond := fmt.Sprintf("beyond the %d that a result shows", max(shown.Count, 0))
	if over > 0 {
		c.addNote("%s %s: kept as files", text.Plural(over, "picture"), beyond)
	}
	if lost > 0 {
		c.addNote("%s %s: neither shown nor kept", text.Plural(lost, "picture"), beyond)
	}
}

// noteLeftOut adds a note that so many pictures are left out.
func (c *Collector) noteLeftOut(n int, why string) {
	switch {
	case n == 1:
		c.addNote("picture left out: %s", why)
	case n > 1:
		c.addNote("%d pictures left out: %s", n, why)
	}
}

// shown returns the pictures for the result, under the names of their files.
func (p *pictures) shown() (out []Picture) {
	for _, d := range p.all {
		if d.show && d.err == nil {
			m := d.rendered
			out = append(out, Picture{Name: d.name, Type: m.MIME, Width: m.Width, Height: m.Height, URI: d.uri, Data: m.Data})
		}
	}
	return out
}
