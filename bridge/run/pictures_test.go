package run

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/bridge/imaging/imagingtest"
)

// displayJPEG is code that displays a picture.
func displayJPEG(data []byte) string {
	return fmt.Sprintf("class P:\n    def _repr_jpeg_(self): return %q\ndisplay(P())\n", base64.StdEncoding.EncodeToString(data))
}

const (
	displayPNG = "class P:\n    def _repr_png_(self): return 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='\ndisplay(P())\n"
	leftOut    = "picture left out: decoding took too long"
)

// TestTimeLimitHoldsForPictures: the answer does not wait for a picture that
// takes every machine a minute and more.
//
//test:long
func TestTimeLimitHoldsForPictures(t *testing.T) {
	s := newServer(t, nil, func(o *Options) { o.Pictures = imaging.Limits{Time: time.Hour} })
	hostile := displayJPEG(imagingtest.SlowJPEG(4096, 10_000))
	for name, code := range map[string]string{"it has ended": hostile, "its time is up": hostile + "while True: pass"} {
		start := time.Now()
		r := s.Do(t.Context(), Request{Code: code, Timeout: 3 * time.Second})
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s: the answer came after %s", name, took)
		}
		if len(r.Pictures) > 0 || r.Status != StatusTimeout && !slices.Contains(r.Notes, leftOut) {
			t.Errorf("%s: %s, %d pictures, notes %q", name, r.Status, len(r.Pictures), r.Notes)
		}
	}
}

// TestNeighborsPicturesComeThrough while those of another run are being decoded.
func TestNeighborsPicturesComeThrough(t *testing.T) {
	entered := make(chan struct{})
	up := fakeUpstreams{"up": {"displayed": func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(entered)
		<-ctx.Done()
		return "", ctx.Err()
	}}}
	s := newServer(t, up, func(o *Options) { o.Pictures = imaging.Limits{Time: time.Hour} })
	hog := make(chan *Result)
	go func() {
		hog <- runCode(t, s, displayJPEG(imagingtest.SlowJPEG(4096, 10_000))+"await mcp_up.displayed()", "up")
	}()
	<-entered
	if r := runCode(t, s, displayPNG); len(r.Pictures) != 1 || len(r.Notes) > 0 {
		t.Errorf("%s, %d pictures, notes %q", r.Status, len(r.Pictures), r.Notes)
	}
	select {
	case r := <-hog:
		t.Errorf("the other run is over: %s", r.Status)
	default:
	}
	s.end() // of the server: cancels the run, and its picture
	if r := <-hog; r.Status != StatusCancelled || strings.Contains(strings.Join(r.Notes, "\n"), "left out") {
		t.Errorf("the other run: %s, notes %q", r.Status, r.Notes)
	}
}
