package page

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/toolcell/toolcell/bridge/record/history"
)

// How pages learn that something has changed.
const (
	lookEvery  = time.Second
	aliveEvery = 15 // looks, after which an idle stream says that it is there
	maxStreams = 16 // windows that are open
	looked     = 50 // the newest runs in which a change is noticed
)

// events tells a page that it may have changed, which then asks for itself anew (HTML, server-sent
// events). Nothing else is in the stream. The page of a run that goes on names it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if !s.stream(+1) {
		http.Error(w, "too many windows are open", http.StatusServiceUnavailable)
		return
	}
	defer s.stream(-1)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	_ = out.SetReadDeadline(time.Time{}) // of the server
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err := io.WriteString(w, text)
		return err == nil && out.Flush() == nil
	}
	run := r.URL.Query().Get("run")
	before := s.mark(run) // first: the page asks for itself anew once the stream is open
	if !send(": toolcell\n\n") {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		now := s.mark(run)
		if now != before && !send("data: changed\n\n") || now == before && n%aliveEvery == 0 && !send(": alive\n\n") {
			return
		}
		before = now
	}
}

// stream counts the streams, and reports whether one more may begin.
func (s *Server) stream(more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > 0 && s.streams >= maxStreams {
		return false
	}
	s.streams += more
	return true
}

// mark is another one once a question, one of the newest runs or what is known of a run has changed.
func (s *Server) mark(run string) string {
	h := sha256.New()
	if run != "" {
		if now := s.runningNow(run); now != nil {
			fmt.Fprintln(h, *now)
		}
	}
	all, _ := s.list()
	for _, q := range all {
		fmt.Fprintln(h, q.ID, q.State)
	}
	n := 0
	for run, err := range s.o.Record.Runs(history.Filter{}) {
		if err != nil || n == looked {
			break
		}
		n++
		fmt.Fprintln(h, run.ID, run.Status, run.Calls, run.Unknown, run.Failed, run.Refused, run.Asked, run.Duration)
	}
	return string(h.Sum(nil))
}
