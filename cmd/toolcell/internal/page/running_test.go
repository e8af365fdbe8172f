package page

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// A fakeActivity is that of a process with one run, in which all that is written is the same text.
type fakeActivity struct {
	said    string
	stopped chan string
	private bool // code may have what was read from private servers
}

func (a fakeActivity) Running(id string) (inbox.Running, bool) {
	return inbox.Running{Stdout: inbox.Printed{Text: a.said + "\nsecond", Before: 2048}, Private: a.private, CPU: 1_500_000, Memory: 5 << 20}, id == liveRun
}

func (a fakeActivity) Stop(id, by string) bool {
	if id != liveRun {
		return false
	}
	a.stopped <- by
	return true
}

func (a fakeActivity) ServerLog(string) (inbox.ServerLog, bool) {
	return inbox.ServerLog{Lines: []string{a.said}, Since: time.Now(), Failure: a.said, Private: a.private}, true
}

func (a fakeActivity) Sandboxes() []inbox.Sandboxes {
	return []inbox.Sandboxes{{Image: a.said, Template: true, Memory: 21 << 20, Forks: 17}}
}

// liveRun is a run that goes on.
const liveRun = "aaaaaaaaaaaa"

// active serves a page of a process with one run.
func active(t *testing.T, said string, private bool, change func(*Options)) (v *visitor, stopped chan string) {
	t.Helper()
	dir, stopped := t.TempDir(), make(chan string, 1)
	s, err := inbox.Listen(dir, consent.NewQueue(consent.Options{}), fakeActivity{said, stopped, private}, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v = visit(t, func(o *Options) {
		servesOf("bank")(o)
		checksOf("checked")(o)
		o.Connect = func() ([]*inbox.Client, error) {
			all, err := inbox.Connect(dir)
			for _, c := range all {
				c.Page = true
			}
			return all, err
		}
		if change != nil {
			change(o)
		}
	})
	begin := v.journal().Begin(liveRun, "")
	if err := begin.Append(record.RunStart{Code: record.TextOf("print(1)"), Grants: record.Grants{Servers: []string{"bank"}, Hosts: []string{"https://a.test", "tcp://db.test:5432"}}}); err != nil {
		t.Fatal(err)
	}
	return v, stopped
}

// TestWhatARunPrintsIsShownWhileItGoesOn, as text.
func TestWhatARunPrintsIsShownWhileItGoesOn(t *testing.T) {
	v, stopped := active(t, evil, true, nil)
	_, body := v.get("/runs/" + liveRun)
	isText(t, "the run", body)
	for _, want := range []string{"alert(1)", "second", "2 KiB before", "1.5s so far", "5 MiB now", "Stop the run", "toolcell exec --server bank --server https://a.test --server tcp://db.test:5432 -c "} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q: %s", want, body)
		}
	}
	_, body = v.get("/servers/bank")
	isText(t, "the server", body)
	if !strings.Contains(body, "What it wrote to stderr") || !strings.Contains(body, "alert(1)") {
		t.Errorf("no log: %s", body)
	}
	_, body = v.get("/sandbox")
	isText(t, "the sandbox", body)
	if !strings.Contains(body, "21 MiB") || !strings.Contains(body, "alert(1)") {
		t.Errorf("no template: %s", body)
	}
	if status, body := v.post("/runs/" + liveRun + "/stop"); status != http.StatusOK {
		t.Errorf("%d: %s", status, body)
	}
	if by := <-stopped; by != inbox.ByPage {
		t.Errorf("stopped by %q", by)
	}
	if status, body := v.post("/runs/bbbbbbbbbbbb/stop"); status != http.StatusConflict || !strings.Contains(body, "it has ended") {
		t.Errorf("another: %d: %s", status, body)
	}
}

// TestWhatAPrivateRunPrintsIsNotShown, nor what a private server wrote, or one that such a run has called.
func TestWhatAPrivateRunPrintsIsNotShown(t *testing.T) {
	for _, private := range []string{"bank", "another, whose values the code may have"} {
		v, _ := active(t, "the balance", private != "bank", func(o *Options) {
			o.Shown = func() timeline.Options {
				return timeline.Options{Hide: func(server string) bool { return server == private }}
			}
		})
		for _, path := range []string{"/runs/" + liveRun, "/servers/bank"} {
			if _, body := v.get(path); strings.Contains(body, "the balance") || strings.Contains(body, "second") {
				t.Errorf("%s: %s", path, body)
			}
		}
		if _, body := v.get("/servers/bank"); !strings.Contains(body, "Not shown, since it may have values of private servers") {
			t.Errorf("it does not say so: %s", body)
		}
		if _, body := v.get("/runs/" + liveRun); !strings.Contains(body, "5 MiB now") || !strings.Contains(body, "Stop the run") {
			t.Error("what it takes is no value, and it can be stopped")
		}
	}
}

// TestWhatOnlyShowsStopsNoRun.
func TestWhatOnlyShowsStopsNoRun(t *testing.T) {
	v, stopped := active(t, "x", false, func(o *Options) { o.ReadsOnly = func() string { return "It only shows." } })
	if _, body := v.get("/runs/" + liveRun); strings.Contains(body, "Stop the run") {
		t.Error("there is a button")
	}
	if status, _ := v.post("/runs/" + liveRun + "/stop"); status != http.StatusForbidden || len(stopped) > 0 {
		t.Errorf("%d, stopped %d", status, len(stopped))
	}
}
