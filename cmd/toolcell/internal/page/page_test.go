package page

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// A visitor is a page that is served, and a browser that has opened it.
type visitor struct {
	t      *testing.T
	server *Server
	base   string
	web    *http.Client
	runs   string // the folder of the record
}

// visit serves a page that can do all, but for what change takes away.
func visit(t *testing.T, change func(*Options)) *visitor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, runs: t.TempDir(), base: "http://" + l.Addr().String()}
	o := Options{
		Record:    history.Open(v.runs),
		Connect:   func() ([]*inbox.Client, error) { return nil, nil },
		Shown:     func() timeline.Options { return timeline.Options{} },
		ReadsOnly: func() string { return "" },
		Policy:    func() rules.File { return policyFile("") },
		ShowCode:  func(string) error { return errors.New("nobody looks") },
	}
	if change != nil {
		change(&o)
	}
	v.server = New(l.Addr(), o)
	done := make(chan struct{})
	go func() { defer close(done); _ = v.server.Serve(t.Context(), l) }()
	t.Cleanup(func() { <-done; v.server.Close() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.web = &http.Client{Jar: jar}
	if status, body := v.get(v.server.Link()); status != http.StatusOK {
		t.Fatalf("opening the link: %d %s", status, body)
	}
	return v
}

func (v *visitor) do(r *http.Request) (int, string) {
	v.t.Helper()
	resp, err := v.web.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (v *visitor) get(address string) (int, string) {
	v.t.Helper()
	if !strings.HasPrefix(address, "http") {
		address = v.base + address
	}
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(r)
}

// post does what a button of the page does.
func (v *visitor) post(path string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Origin", v.base)
	return v.do(r)
}

// journal returns a record to write runs to.
func (v *visitor) journal() *record.Journal {
	j := record.Open(record.Options{Dir: v.runs, Host: "vm", Keep: record.KeepAll})
	v.t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestOnlyWhoOpenedALinkIsAnswered, once for each link, and only at the address of the page.
func TestOnlyWhoOpenedALinkIsAnswered(t *testing.T) {
	v := visit(t, nil)
	if status, body := v.get("/"); status != http.StatusOK || !strings.Contains(body, "Nothing waits for you") {
		t.Fatalf("with the cookie %d %s", status, body)
	}
	link := v.server.Link()
	stranger := &visitor{t: t, base: v.base, web: &http.Client{}}
	for _, path := range []string{"/", "/runs", "/runs/x", "/compare", "/policy", "/policy/rule?run=x&call=1", "/events", "/static/page.js", "/open", "/open?token=", "/open?token=x"} {
		if status, _ := stranger.get(path); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s without the cookie: %d", path, status)
		}
	}
	if status, _ := stranger.get(link); status != http.StatusOK {
		t.Errorf("a new link: %d", status)
	}
	if status, _ := stranger.get(link); status != http.StatusForbidden {
		t.Errorf("the same link again: %d", status)
	}
	if old := link; v.server.Link() == old {
		t.Error("two links are the same")
	}
}

// TestOtherOriginsDoNothing: names that lead here, and pages of other ports, whose requests have the cookie.
func TestOtherOriginsDoNothing(t *testing.T) {
	v := visit(t, nil)
	post := func(change func(*http.Request)) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.base+"/questions/ask-x/deny", strings.NewReader("stop=1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		status, _ := v.do(r)
		return status
	}
	for name, c := range map[string]struct {
		want   int
		change func(*http.Request)
	}{
		"of the page": {http.StatusConflict, func(r *http.Request) { r.Header.Set("Origin", v.base); r.Header.Set("Sec-Fetch-Site", "same-origin") }},
		"another port": {http.StatusForbidden, func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:1")
			r.Header.Set("Sec-Fetch-Site", "same-site")
		}},
		"the port alone":   {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }},
		"another site":     {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		"no origin":        {http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		"a rebinding name": {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "evil.example:" + r.URL.Port() }},
		"localhost":        {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() }},
		"without its port": {http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "127.0.0.1" }},
		"without a cookie": {http.StatusUnauthorized, func(r *http.Request) {
			v.web.Jar.SetCookies(r.URL, []*http.Cookie{{Name: cookieName, Value: "x", Path: "/"}})
		}},
	} {
		saved := v.web.Jar.Cookies(mustURL(t, v.base))
		if got := post(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		v.web.Jar.SetCookies(mustURL(t, v.base), saved)
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestWhatOnlyShowsDoesNothing, and has no form that would.
func TestWhatOnlyShowsDoesNothing(t *testing.T) {
	v := visit(t, func(o *Options) { o.ReadsOnly = func() string { return "This page only shows." } })
	for _, what := range []string{"begin", "approve", "deny", "revoke"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.base+"/questions/ask-x/"+what, nil)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := v.do(r); status != http.StatusForbidden || !strings.Contains(body, "This page only shows.") {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
}

// TestWithoutATerminalNothingIsApproved.
func TestWithoutATerminalNothingIsApproved(t *testing.T) {
	v := visit(t, func(o *Options) { o.ShowCode = nil })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.base+"/questions/ask-x/begin", nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := v.do(r); status != http.StatusForbidden || !strings.Contains(body, "no terminal") {
		t.Errorf("%d %s", status, body)
	}
}

// TestHostileRunsAreText on each page that has something of them.
func TestHostileRunsAreText(t *testing.T) {
	v := visit(t, nil)
	const evil = `</td></script><script>alert(1)</script><img src=x onerror=alert(2)>" onmouseover="alert(3)` + "\x1b[31m\u202e{{.}}"
	j := v.journal()
	run := j.Begin("hostile000", "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(run.Append(record.RunStart{
		Command: "serve", Client: record.Client{Name: evil, Version: evil}, Session: evil, User: evil, Code: record.TextOf("x = 1\n" + evil), Grants: record.Grants{Servers: []string{evil}},
	}))
	must(run.Append(record.CallStart{Call: 1, Line: 2, Effect: "tools/call", Server: evil, Tool: evil, Arguments: record.TextOf(evil), Writes: true}))
	must(run.Append(record.CallEnd{Call: 1, Line: 2, Server: evil, Tool: evil, Outcome: record.ToolError, Error: record.TextOf(evil), Answer: record.TextOf(evil)}))
	must(run.Append(record.File{Use: "left", Name: evil, Type: evil}))
	out := run.NewStream()
	fmt.Fprint(out, strings.Repeat(evil+"\n", 100))
	must(run.Append(record.RunEnd{Status: "error", Error: record.TextOf(evil), Traceback: record.TextOf(evil), Stdout: out.Text()}))
	for _, path := range []string{
		"/", "/runs", "/runs/hostile", "/policy", "/policy/rule?run=hostile&call=1", "/policy/rule?run=" + url.QueryEscape(evil) + "&call=1", "/policy/rule?call=" + url.QueryEscape(evil), "/compare?a=hostile&b=hostile", "/runs/" + url.PathEscape(evil), "/runs?q=" + url.QueryEscape(evil), "/runs?since=" + url.QueryEscape(evil),
		"/runs?client=" + url.QueryEscape(evil) + "&tool=" + url.QueryEscape(evil) + "&status=" + url.QueryEscape(evil),
	} {
		status, body := v.get(path)
		if status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
		for _, not := range []string{"<script>alert", "<img", `" onmouseover`, "\x1b", "\u202e"} {
			if strings.Contains(body, not) {
				t.Errorf("%s has %q: …%s", path, not, body[max(0, strings.Index(body, not)-200):][:300])
			}
		}
		if strings.HasPrefix(path, "/runs/hostile") && !strings.Contains(body, "alert(1)") {
			t.Errorf("%s shows nothing of the run: %s", path, body)
		}
	}
}

// TestRunsAreFoundAndCompared by text, writes and number.
func TestRunsAreFoundAndCompared(t *testing.T) {
	v := visit(t, nil)
	j := v.journal()
	for i := range 120 {
		run := j.Begin(fmt.Sprintf("run%07d", i), "")
		code := fmt.Sprintf("print('number %d it''s')\nprint(2)", i)
		if err := run.Append(record.RunStart{Command: "serve", Client: record.Client{Name: "cli"}, Code: record.TextOf(code), Grants: record.Grants{Servers: []string{"bank"}}}); err != nil {
			t.Fatal(err)
		}
		if i == 7 {
			if err := run.Append(record.CallStart{Call: 1, Line: 1, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true}); err != nil {
				t.Fatal(err)
			}
			if err := run.Append(record.CallEnd{Call: 1, Server: "bank", Tool: "pay", Writes: true, Outcome: record.OK}); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Append(record.RunEnd{Status: "success", Duration: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{"/runs": 50, "/runs?n=100": 100, "/runs?n=100000": 120, "/runs?q=NUMBER+7+": 1, "/runs?q=run000011": 10, "/runs?writes=1": 1, "/runs?tool=bank.pay": 1, "/runs?status=killed": 0, "/runs?until=2020-01-01": 0} {
		_, body := v.get(path)
		if got := strings.Count(body, `<a href="/runs/run`); got != want {
			t.Errorf("%s lists %d runs, want %d", path, got, want)
		}
	}
	_, body := v.get("/runs/run0000007")
	for _, want := range []string{`<a href="#call-1"`, `id="call-1"`, "bank.pay", "#1*", "toolcell exec --server bank -c &#39;print("} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of a run has no %q", want)
		}
	}
	_, body = v.get("/compare?a=run0000007&b=run0000008")
	for _, want := range []string{"-print(&#39;number 7 it", "&#43;print(&#39;number 8 it", "-bank.pay"} {
		if !strings.Contains(body, want) {
			t.Errorf("the comparison has no %q: %s", want, body)
		}
	}
	if status, _ := v.get("/runs/run"); status != http.StatusNotFound {
		t.Errorf("the beginning of many IDs: %d", status)
	}
}

// TestValuesAreHidden of private servers, and all of them where a client has started the page.
func TestValuesAreHidden(t *testing.T) {
	var shown timeline.Options
	v := visit(t, func(o *Options) { o.Shown = func() timeline.Options { return shown } })
	run := v.journal().Begin("private000", "")
	if err := run.Append(record.RunStart{Command: "serve", Code: record.TextOf("secret = 1"), Grants: record.Grants{Servers: []string{"mail"}}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    timeline.Options
		want bool
	}{
		"all are shown":      {timeline.Options{}, true},
		"another is private": {timeline.Options{Hide: func(s string) bool { return s == "bank" }}, true},
		"it is private":      {timeline.Options{Hide: func(s string) bool { return s == "mail" }}, false},
		"below a client":     {timeline.Options{HideAll: true}, false},
	} {
		shown = c.o
		for _, path := range []string{"/runs/private000", "/compare?a=private000&b=private000"} {
			if _, body := v.get(path); strings.Contains(body, "secret = 1") != c.want && !strings.HasPrefix(path, "/compare") || !c.want && strings.Contains(body, "secret") {
				t.Errorf("%s, %s: %s", name, path, body)
			}
		}
	}
}

// TestFilesOfRunsDoNothing: pictures are shown and all else is saved, whatever is in them.
func TestFilesOfRunsDoNothing(t *testing.T) {
	const body = "<script>alert(1)</script>"
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	var shown timeline.Options
	v := visit(t, func(o *Options) {
		o.Shown = func() timeline.Options { return shown }
		o.OpenFile = func(uri string) (*os.File, error) {
			if uri != "toolcell://runs/x/y" {
				return nil, errors.New("there is no file any more")
			}
			return os.Open(path)
		}
	})
	run := v.journal().Begin("files00000", "")
	files := []record.File{
		{Name: "plot.png", Type: "image/png", Size: 25},
		{Name: "drawing.svg", Type: "image/svg+xml", Size: 25},
		{Name: `page "<b>.html`, Type: "text/html", Size: 25},
		{Name: "large.png", Type: "image/png", Size: 100 << 20},
	}
	for _, f := range append(files, record.File{Name: "given.png", Use: "given", Type: "image/png"}) {
		if f.URI = "toolcell://runs/x/y"; f.Use == "" {
			f.Use = "left"
		}
		if err := run.Append(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.Append(record.File{Name: "gone.txt", Use: "left", URI: "toolcell://runs/x/gone"}); err != nil {
		t.Fatal(err)
	}
	if _, text := v.get("/runs/files00000"); strings.Count(text, "<img") != 1 || strings.Contains(text, "<b>") || strings.Contains(text, "files/5") {
		t.Errorf("the page of the run: %s", text)
	}
	for n, f := range files {
		resp, err := v.web.Get(v.base + fmt.Sprintf("/runs/files00000/files/%d", n))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		h := resp.Header
		_, saved, err := mime.ParseMediaType(h.Get("Content-Disposition"))
		if n == 0 && h.Get("Content-Type") != "image/png" || n > 0 && (err != nil || saved["filename"] != f.Name || h.Get("Content-Type") != "application/octet-stream") {
			t.Errorf("%s: %v", f.Name, h)
		}
		if string(got) != body || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q, %v", f.Name, got, h)
		}
	}
	for _, path := range []string{"4", "5", "-1", "99", "x"} {
		if status, text := v.get("/runs/files00000/files/" + path); status != http.StatusNotFound {
			t.Errorf("file %s: %d %s", path, status, text)
		}
	}
	shown.HideAll = true
	if status, _ := v.get("/runs/files00000/files/0"); status != http.StatusNotFound {
		t.Errorf("where values are hidden: %d", status)
	}
}

// TestRunsOfManyCallsAreCut, and the page says so, also of a comparison.
func TestRunsOfManyCallsAreCut(t *testing.T) {
	v := visit(t, nil)
	run := v.journal().Begin("many000000", "")
	for n := range 600 {
		if err := run.Append(record.CallStart{Call: n + 1, Effect: "tools/call", Server: "bank", Tool: "look"}); err != nil {
			t.Fatal(err)
		}
	}
	_, page := v.get("/runs/many000000")
	if n := strings.Count(page, `id="call-`); n != 500 || !strings.Contains(page, "100 more: <code>toolcell runs show many000000 --values") {
		t.Errorf("%d of 600 calls, and %s", n, page[max(0, len(page)-600):])
	}
	if _, both := v.get("/compare?a=many000000&b=many000000"); !strings.Contains(both, "They are the same, as far as they are compared.") {
		t.Errorf("the comparison: %s", both)
	}
}
