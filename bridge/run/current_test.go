package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestARunHasTheOptionsOfItsBeginning: what the user has changed since the start counts for the next
// run, and a note about it is in that one's result.
func TestARunHasTheOptionsOfItsBeginning(t *testing.T) {
	var mu sync.Mutex
	var started []oci.Process
	change, note, unusable := func(*Options) {}, "", error(nil)
	s := newServer(t, nil, func(o *Options) {
		o.Timeout, o.MaxTimeout, o.Sessions = 20*time.Second, time.Minute, 1
		o.Limits.Memory = 512 << 20
		inner := o.Sandboxes
		o.Sandboxes = startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
			mu.Lock()
			started = append(started, p)
			mu.Unlock()
			return inner.Start(ctx, p)
		})
		o.Current = func(o Options) (Options, string, error) {
			change(&o)
			return o, note, unusable
		}
	})
	limits := func(r *Result) string {
		mu.Lock()
		defer mu.Unlock()
		last := started[len(started)-1]
		return fmt.Sprintln(r.Status, len(started), last.Limits.Memory>>20, last.Python.Preload, r.TimeoutSeconds, len(r.Stdout[0]) > 1500, r.Notes)
	}
	code := "print('x' * 3000)"
	if got := limits(s.Do(t.Context(), Request{Code: code, Timeout: time.Hour})); got != "success 1 512 [] 60 true [the timeout was lowered to the maximum of 60 s]\n" {
		t.Errorf("as at the start: %s", got)
	}
	change, note = func(o *Options) {
		o.MaxTimeout, o.Limits.Memory, o.MaxOutput, o.Preload = 10*time.Second, 256<<20, 1<<10, []string{"json"}
	}, "settings: broken"
	got := limits(s.Do(t.Context(), Request{Code: code, Timeout: time.Hour, Session: "s"}))
	if !strings.HasPrefix(got, "success 2 256 [json] 10 false [settings: broken the timeout was lowered to the maximum of 10 s") {
		t.Errorf("changed: %s", got)
	}
	change, note = func(*Options) {}, ""
	if got := limits(s.Do(t.Context(), Request{Code: "print(1)", Session: "s"})); !strings.HasPrefix(got, "success 2 256 [json] 0 false") {
		t.Errorf("a session keeps its sandbox: %s", got)
	}
	change = func(o *Options) { o.Mounts = []spec.Mount{{Source: "/srv", Target: "/data"}} }
	r := s.Do(t.Context(), Request{Code: "print(1)", Session: "s"})
	if r.Session != "new" || !strings.Contains(strings.Join(r.Notes, " "), "the settings have other mounts now") {
		t.Errorf("a session does not keep its mounts: %s, %s", r.Session, r.Notes)
	}
	unusable = errors.New("the folder is gone")
	if r := s.Do(t.Context(), Request{Code: "print(1)"}); r.Status != StatusSandbox || r.Error != "the folder is gone" {
		t.Errorf("settings that cannot be used: %s, %s", r.Status, r.Error)
	}
	unusable = nil
	if r := s.Do(t.Context(), Request{Code: "print(1)"}); r.Status != StatusSuccess {
		t.Errorf("put right: %s, %s", r.Status, r.Error)
	}
}

// TestPicturesKeepToTheLimitsOfTheirRun.
func TestPicturesKeepToTheLimitsOfTheirRun(t *testing.T) {
	side := 0
	s := newServer(t, nil, func(o *Options) {
		o.RunsDir = t.TempDir()
		o.Current = func(o Options) (Options, string, error) {
			o.Pictures = imaging.Limits{Side: side}
			return o, "", nil
		}
	})
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 32))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{64, 16} {
		side = want
		r := s.Do(t.Context(), Request{Code: fmt.Sprintf("from mcp import runtime\nclass P:\n    def _repr_png_(self): return bytes.fromhex('%x')\nruntime.display(P())", picture.Bytes())})
		if len(r.Pictures) != 1 || r.Pictures[0].Width != want {
			t.Errorf("%s: %+v, %s", r.Status, r.Pictures, r.Error)
		}
	}
}
