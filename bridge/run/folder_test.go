package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// A shownLog is what the sandboxes of a server were shown. They start as the host's processes.
type shownLog struct {
	Sandboxes
	mu    sync.Mutex
	shown []*spec.Project
}

func (l *shownLog) Start(ctx context.Context, p oci.Process) (Sandbox, error) {
	if err := l.find(ctx, p); err != nil {
		return nil, err
	}
	return l.Sandboxes.Start(ctx, p)
}

// find does what oci does before a start.
func (l *shownLog) find(ctx context.Context, p oci.Process) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *spec.Project
	var err error
	if p.FindProject != nil {
		found, err = p.FindProject(ctx)
	}
	l.shown = append(l.shown, found)
	return err
}

// last returns the source that the last sandbox was shown, and what was hidden.
func (l *shownLog) last(t *testing.T) string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.shown[len(l.shown)-1]; p != nil {
		return p.Source + " without " + strings.Join(p.Hidden, ",")
	}
	return ""
}

// folders makes two folders of clients, with a file each that is hidden.
func folders(t *testing.T) (one, two string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	one, two = filepath.Join(dir, "one"), filepath.Join(dir, "two")
	for _, at := range []string{one, two} {
		err = errors.Join(err, os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, ".env"), nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return one, two
}

func newFolderServer(t *testing.T, dir string, change func(*Options)) (*Runs, *shownLog) {
	t.Helper()
	log := &shownLog{}
	s := newSessionServer(t, nil, func(o *Options) {
		log.Sandboxes = o.Sandboxes
		o.Sandboxes = log
		o.Shown = project.New(project.Options{Dir: dir, Check: func(d string) error {
			if filepath.Base(d) == "two" && dir == "" {
				return errors.New("refused")
			}
			return nil
		}, Denied: func(p spec.Project) (string, string) {
			if filepath.Base(p.Source) == "two" {
				return "code cannot read it", "chmod"
			}
			return "", ""
		}})
		if change != nil {
			change(o)
		}
	})
	return s, log
}

// TestRunsAreShownTheFolderOfTheirClient, and say once why they are shown none, or what is
// wrong with it.
func TestRunsAreShownTheFolderOfTheirClient(t *testing.T) {
	one, two := folders(t)
	s, log := newFolderServer(t, one, nil)
	if !s.ShowsFolders() || newServer(t, nil, nil).ShowsFolders() {
		t.Error("which server shows folders?")
	}
	for _, tt := range []struct {
		req   Request
		shown string
		notes []string
	}{
		{Request{}, one + " without .env", nil},
		{Request{Folder: two}, two + " without .env", []string{"code cannot read it; to fix it: chmod"}},
		{Request{Folder: two}, two + " without .env", nil},
		{Request{FolderErr: errors.New("no answer")}, "", []string{"no answer"}},
		{Request{FolderErr: errors.New("no answer")}, "", nil},
		{Request{Folder: one + "/nothing"}, "", []string{`the project's folder "` + one + `/nothing" is not shown at /project: it does not exist`}},
	} {
		tt.req.Code = "print(1)"
		s.Do(t.Context(), tt.req).says(t, "1").notes(t, tt.notes...)
		if got := log.last(t); got != tt.shown {
			t.Errorf("%+v: shown is %q, want %q", tt.req, got, tt.shown)
		}
	}
	if r := s.Do(t.Context(), Request{Code: "print(1)", Folder: "/" + strings.Repeat("x", 1<<20)}).says(t, "1"); len(r.Notes) != 1 || len(r.Notes[0]) > maxNote+100 {
		t.Errorf("notes about a path that is too long: %d", len(r.Notes))
	}
	if r := s.Do(t.Context(), Request{Code: "open('" + one + "/data.csv')"}); r.Hint != `the client's folder is at /project in the sandbox: this is "/project/data.csv"` {
		t.Errorf("hint: %q", r.Hint)
	}
	if r := s.Do(t.Context(), Request{Code: "open('" + one + "/data.csv')", FolderErr: errors.New("no answer")}); strings.Contains(r.Hint, "none of the user's files") {
		t.Errorf("hint without it, where a note says why: %q", r.Hint)
	}
}

// TestSessionEndsWithItsFolder: its code has read the other one.
func TestSessionEndsWithItsFolder(t *testing.T) {
	one, two := folders(t)
	s, log := newFolderServer(t, one, nil)
	in := func(folder, code string) *Result {
		return s.Do(t.Context(), Request{Code: code, Session: "s", Folder: folder})
	}
	in("", "x = 1")
	in(one, "print(x)").says(t, "1")
	r := in(two, "print('x' in globals())").says(t, "False")
	if !slices.Contains(r.Notes, `session "s" was ended: the client works in another folder now; this is a new one, without its variables and files`) || r.Session != sessionNew {
		t.Errorf("got %q, %q", r.Session, r.Notes)
	}
	if got := log.last(t); got != two+" without .env" {
		t.Errorf("shown is %q", got)
	}
}

// TestSessionKeepsItsFolderIfTheClientDoesNotTell: it ends only if it is known to show the wrong one.
func TestSessionKeepsItsFolderIfTheClientDoesNotTell(t *testing.T) {
	one, two := folders(t)
	s, log := newFolderServer(t, two, nil)
	silent, none := errors.New("no answer"), fmt.Errorf("nothing is shown: %w", ErrNoFolder)
	client := newClient()
	in := func(session, folder string, err error, code string) *Result {
		return s.Do(t.Context(), Request{Client: client, Code: code, Session: session, Folder: folder, FolderErr: err})
	}
	ended := func(session, why string) string {
		return `session "` + session + `" was ended: ` + why + "; this is a new one, without its variables and files"
	}
	in("s", one, nil, "x = 1")
	client = newClient() // that has read nothing
	in("s", "", silent, "print(x)").says(t, "1").notes(t)
	if read := client.Taint.Reads(); !slices.Equal(read, []string{"/project"}) {
		t.Errorf("the session has read %q", read)
	}
	if r := in("s", "", silent, "open('"+one+"/data.csv')"); !strings.HasPrefix(r.Hint, "the client's folder is at /project") {
		t.Errorf("hint: %q", r.Hint)
	}
	in("s", one, nil, "print(x)").says(t, "1").notes(t)
	if got := len(log.shown); got != 1 {
		t.Errorf("%d sandboxes were started", got)
	}
	in("s", "", none, "print('x' in globals())").says(t, "False").notes(t, none.Error(), ended("s", "the folder that it showed is no longer shown"))
	if got := log.last(t); got != "" {
		t.Errorf("a client without a folder: shown is %q", got)
	}

	in("late", "", silent, "x = 2").notes(t, "no answer")
	in("late", "", silent, "print(x)").says(t, "2").notes(t)
	in("late", one, nil, "print('x' in globals())").says(t, "False").notes(t, ended("late", "it did not show the client's folder, which is known now"))
}

// TestSandboxThatEndsMeanwhileTakesItsFolderAlong: no client has told the one of the next sandbox.
func TestSandboxThatEndsMeanwhileTakesItsFolderAlong(t *testing.T) {
	one, _ := folders(t)
	s, log := newFolderServer(t, one, askedForHosts(t))
	s.Do(t.Context(), Request{Code: "x = 1", Session: "s"}).says(t, "")
	r := s.Do(t.Context(), Request{
		Code: "print('x' in globals())", Session: "s", FolderErr: errors.New("no answer"), Servers: []string{"https://a.example"}, Client: newClient(),
		Ask: func(context.Context, consent.Question) consent.Answer {
			in := s.sessions.live["s"].interpreter
			in.kill(errors.New("memory"))
			<-in.ended
			return consent.Answer{Choice: consent.ForCall}
		},
	}).says(t, "False")
	if log.last(t) != "" || !slices.Contains(r.Notes, "no answer") {
		t.Errorf("shown is %q, notes %q", log.last(t), r.Notes)
	}
}

// TestFolderThatCannotBeLookedThroughIsNotShown, and the run goes on.
func TestFolderThatCannotBeLookedThroughIsNotShown(t *testing.T) {
	one, _ := folders(t)
	for n := range 513 {
		if err := os.WriteFile(filepath.Join(one, ".env"+strings.Repeat("x", n%200)+string(rune('a'+n/200))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, log := newFolderServer(t, one, nil)
	r := runCode(t, s, "print(1)").says(t, "1")
	if log.last(t) != "" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "more than 512 files in it would have to be hidden; give code a smaller folder with --mounts") {
		t.Errorf("shown is %q, notes %q", log.last(t), r.Notes)
	}
}

// askedForHosts is a policy that lets code reach a host; the user is asked if private data was read.
func askedForHosts(t *testing.T) func(*Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(path, []byte("[network]\nallow = ['https://a.example']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Policy = policy.Load(path, true, nil) }
}

// TestRunsWithAFolderCountAsHavingReadAPrivateServer: the user is asked before they reach a
// host, and the model has read it, too.
func TestRunsWithAFolderCountAsHavingReadAPrivateServer(t *testing.T) {
	one, _ := folders(t)
	s, _ := newFolderServer(t, one, askedForHosts(t))
	var asked []string
	do := func(client *consent.Client, r Request) *Result {
		asked = nil
		r.Code, r.Client, r.Timeout = "print(1)", client, time.Minute
		r.Ask = func(_ context.Context, q consent.Question) consent.Answer {
			asked = append(asked, q.Text())
			return consent.Answer{Choice: consent.Deny}
		}
		return s.Do(t.Context(), r)
	}
	hosts := []string{"https://a.example"}
	client := newClient()
	if r := do(client, Request{Servers: hosts}); !r.IsError() || len(asked) != 1 || !strings.Contains(asked[0], "private data was read before, from /project; what is sent to these hosts gets to others") {
		t.Errorf("with a folder and a host: %+v, asked %q", r, asked)
	}
	client = newClient()
	do(client, Request{}).says(t, "1")
	if len(asked) > 0 || !slices.Equal(client.Taint.Reads(), []string{"/project"}) {
		t.Errorf("with a folder: asked %q, read %q", asked, client.Taint.Reads())
	}
	if r := do(client, Request{Servers: hosts, FolderErr: errors.New("none")}); !r.IsError() || len(asked) != 1 {
		t.Errorf("later, with a host: %+v, asked %q", r, asked)
	}
	client = newClient()
	do(client, Request{Servers: hosts, FolderErr: errors.New("none")}).says(t, "1")
	if len(asked) > 0 || len(client.Taint.Reads()) > 0 {
		t.Errorf("without a folder: asked %q, read %q", asked, client.Taint.Reads())
	}
}

// TestFirstSandboxIsPreparedWithTheFolder that this process works in.
func TestFirstSandboxIsPreparedWithTheFolder(t *testing.T) {
	one, two := folders(t)
	for dir, want := range map[string]string{one: one + " without .env", filepath.Join(two, "nothing"): ""} {
		warmed := make(chan oci.Process, 1)
		s, log := newFolderServer(t, dir, func(o *Options) {
			o.Cached = func(context.Context) (Image, bool) { return Image{Python: "/python"}, true }
			o.Warm = func(_ context.Context, p oci.Process) { warmed <- p }
		})
		s.Prepare()
		if err := log.find(t.Context(), <-warmed); err != nil {
			t.Fatal(err)
		}
		if got := log.last(t); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

// TestLookThatEndsWithItsRunIsNoNote: the folder may be shown all the same.
func TestLookThatEndsWithItsRunIsNoNote(t *testing.T) {
	one, _ := folders(t)
	var p oci.Process
	in := &interpreter{}
	in.show(&p, project.New(project.Options{}), one)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the user has stopped it")
	cancel(stopped)
	if found, err := p.FindProject(ctx); found != nil || !errors.Is(err, stopped) || in.folderNote != "" || in.project() != "" {
		t.Errorf("got %v, %v, note %q", found, err, in.folderNote)
	}
	if found, err := p.FindProject(t.Context()); err != nil || found.Source != one || in.project() != "/project" {
		t.Errorf("later: %v, %v", found, err)
	}
}
