package mcpproxy

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestNothingIsAddedToAClosedProxy: what it has is what it refuses.
func TestNothingIsAddedToAClosedProxy(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	s := fake(t, "FAKE_STARTS", starts)
	p := proxyFor(t, Options{}, s)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	changed, more := s, s
	changed.Env = maps.Clone(s.Env)
	changed.Env["MORE"] = "1"
	more.Name, more.Alias = "more", "more"
	p.Update(config.Config{Servers: []config.Server{changed, more}})
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, errClosed.Error())
	_, err = p.Call(t.Context(), CallRequest{Server: "more", Tool: "echo"})
	mcptest.WantError(t, err, `there is no server "more"`)
	if got := lines(starts); len(got) > 0 {
		t.Errorf("%d starts", len(got))
	}
}

// TestOnceClosedNoServerTakesACall, however many there are.
func TestOnceClosedNoServerTakesACall(t *testing.T) {
	var servers []config.Server
	for i := range 100 {
		name := fmt.Sprintf("s%d", i)
		servers = append(servers, config.Server{Name: name, Alias: name, Transport: "stdio", Command: "no-such-command-anywhere"})
	}
	p := proxyFor(t, Options{}, servers...)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		mcptest.WantError(t, p.AwaitTools(t.Context(), s.Name), errClosed.Error())
	}
}

// TestCloseWaitsForServersThatWereRemoved before, and ends the guard of them all.
func TestCloseWaitsForServersThatWereRemoved(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes))
	pid := structured[map[string]int](t, mustCall(t, p, "get_pid", `{}`))["pid"]
	ended := make(chan error, 1)
	go func() {
		_, err := p.Call(context.WithoutCancel(t.Context()), CallRequest{Server: "fake", Tool: "hang"})
		ended <- err
	}()
	eventually(t, "the call", func() bool { return len(lines(notes)) == 1 })
	p.Update(config.Config{})
	if !alive(pid) || !p.guard.Running() {
		t.Fatal("the server or its guard has ended under the call")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the server still runs")
	}
	if p.guard.Running() {
		t.Error("the guard still runs")
	}
	if err := <-ended; err == nil {
		t.Error("the call in flight did not fail")
	}
}

// TestServersAreThoseOfNow when they are listed, and calls do not look.
func TestServersAreThoseOfNow(t *testing.T) {
	looked := 0
	var p *Proxy
	s := fake(t)
	p = proxyFor(t, Options{Refresh: func(update func(config.Config)) {
		looked++
		more := s
		more.Name, more.Alias = "more", "more"
		update(config.Config{Servers: []config.Server{s, more}})
	}}, s)
	mustCall(t, p, "echo", `{}`)
	if looked > 0 {
		t.Error("a call looks for other servers")
	}
	if got := p.Servers(); len(got) != 2 || got[1].Name != "more" || looked != 1 {
		t.Errorf("after %d looks: %+v", looked, got)
	}
}

// TestWhatThereIsNotCanBeNeitherListedNorRefreshed.
func TestWhatThereIsNotCanBeNeitherListedNorRefreshed(t *testing.T) {
	broken := fake(t, "FAKE_DIE_AT_START", "1")
	broken.Name, broken.Alias = "broken", "broken"
	for name, do := range map[string]func(p *Proxy, server string) error{
		"all docs": func(p *Proxy, server string) error { _, err := p.Docs(t.Context(), server, "", false); return err },
		"one doc":  func(p *Proxy, server string) error { _, err := p.Docs(t.Context(), server, "echo", true); return err },
		"tools":    func(p *Proxy, server string) error { _, err := p.Tools(t.Context(), server); return err },
		"refresh":  func(p *Proxy, server string) error { _, err := p.Refresh(t.Context(), server); return err },
		"prepare": func(p *Proxy, server string) error {
			_, err := p.Prepare(t.Context(), server, Want{Method: CallTool, Name: "echo", Live: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := proxyFor(t, Options{}, fake(t), broken)
			mcptest.WantError(t, do(p, "fkae"), `there is no server "fkae"; did you mean "fake"?`)
			mcptest.WantError(t, do(p, "broken"), "API_KEY is missing")
		})
	}
}

// TestCloseWaitsForSessionsOfRemovedServers to be given up: nothing else would end them.
func TestCloseWaitsForSessionsOfRemovedServers(t *testing.T) {
	var deleted atomic.Bool
	h := legacyOnly(streamable(&noteBook{}, nil))
	p := proxyFor(t, Options{}, web(t, config.HTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted.Store(true)
		}
		h.ServeHTTP(w, r)
	})))
	mustCall(t, p, "echo", `{}`)
	p.Update(config.Config{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if !deleted.Load() {
		t.Error("the session was not deleted")
	}
}
