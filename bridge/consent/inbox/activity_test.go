package inbox

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
)

// A fakeActivity has one run, one server and one kind of sandboxes.
type fakeActivity struct{ stopped string }

var (
	someRun       = Running{Stdout: Printed{"out\n<\u2028>", 7}, Stderr: Printed{Text: "err"}, CPU: 1500, Memory: 3, Peak: 4}
	someLog       = ServerLog{Lines: []string{"a", "b"}, Running: true, Since: time.Unix(1_700_000_000, 0).UTC(), Failure: "none"}
	someSandboxes = []Sandboxes{{Image: "python", Waiting: 4, Template: true, Memory: 1 << 20, Forks: 9}, {Image: "other", Packages: true}}
)

func (a *fakeActivity) Running(id string) (Running, bool) { return someRun, id == "run" }

func (a *fakeActivity) Stop(id, by string) bool {
	a.stopped = id + " " + by
	return id == "run"
}

func (a *fakeActivity) ServerLog(name string) (ServerLog, bool) { return someLog, name == "server" }

func (a *fakeActivity) Sandboxes() []Sandboxes { return someSandboxes }

// TestTheActivityOfAProcessIsSeen, and what another may have is no error.
func TestTheActivityOfAProcessIsSeen(t *testing.T) {
	a, dir := &fakeActivity{}, Dir(t.TempDir())
	s, err := Listen(dir, consent.NewQueue(consent.Options{}), a, notStrict, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := connect(t, dir)
	c.Page = true
	if now, ok, err := c.Running("run"); now != someRun || !ok || err != nil {
		t.Errorf("%+v, %t, %v", now, ok, err)
	}
	if log, ok, err := c.ServerLog("server"); !reflect.DeepEqual(log, someLog) || !ok || err != nil {
		t.Errorf("%+v, %t, %v", log, ok, err)
	}
	if all, err := c.Sandboxes(); !reflect.DeepEqual(all, someSandboxes) || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if ok, err := c.End("run"); !ok || err != nil || a.stopped != "run "+ByPage {
		t.Errorf("%t, %v, stopped %q", ok, err, a.stopped)
	}
	_, running, err1 := c.Running("other")
	_, logged, err2 := c.ServerLog("other")
	ended, err3 := c.End("other")
	if running || logged || ended || err1 != nil || err2 != nil || err3 != nil {
		t.Error(running, err1, logged, err2, ended, err3)
	}
}

// TestAnOlderServeShowsNoActivity: it knows no such operations, which is an error.
func TestAnOlderServeShowsNoActivity(t *testing.T) {
	c := &serverConn{}
	if err := c.about(request{Op: "later"}); err == nil || err.Error() != `there is no operation "later"` {
		t.Error(err)
	}
}
