package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestHandshakeWorksWithServersOldAndNew(t *testing.T) {
	for _, tt := range []struct {
		name    string
		env     []string
		timeout time.Duration
		starts  int
	}{
		{"answers discover with an error", nil, 0, 1},
		{"dies on discover", []string{"FAKE_DISCOVER", "die"}, 0, 2},
		{"hangs on discover", []string{"FAKE_DISCOVER", "hang"}, shortTimeout, 2},
		{"ignores discover", []string{"FAKE_DISCOVER", "ignore"}, shortTimeout, 2},
		{"starts slower than the timeout with discover", []string{"FAKE_SLOW_START", "1s"}, shortTimeout, 1},
		{"logs to stdout", []string{"FAKE_LOGS", "1"}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			starts := filepath.Join(t.TempDir(), "starts")
			p := proxyFor(t, Options{IdleTimeout: time.Hour, discoverTimeout: tt.timeout}, fake(t, append(tt.env, "FAKE_STARTS", starts)...))
			if got := structured[map[string]int](t, mustCall(t, p, "echo", `{"a":1}`)); got["a"] != 1 {
				t.Errorf("echo = %v", got)
			}
			if got := len(lines(starts)); got != tt.starts {
				t.Errorf("%d starts, want %d", got, tt.starts)
			}
			// What handshake it takes is remembered: a restart is one more start.
			p.current().upstreams[0].expire(p.current().upstreams[0].live)
			mustCall(t, p, "echo", `{}`)
			if got := len(lines(starts)); got != tt.starts+1 {
				t.Errorf("%d starts after a restart, want %d", got, tt.starts+1)
			}
		})
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	missing := fake(t)
	missing.Command = "no-such-command-anywhere"
	echoes := fake(t)
	echoes.Command = "cat"
	closes, endless := fake(t), fake(t)
	closes.Command, closes.Args = "/bin/sh", []string{"-c", "exec >&-; exec sleep 600"}
	endless.Command, endless.Args = "/bin/sh", []string{"-c", `printf '{'; tr '\0' x </dev/zero`}
	for _, tt := range []struct {
		name   string
		server config.Server
		want   []string
	}{
		{"dies", fake(t, "FAKE_DIE_AT_START", "1", "FAKE_STARTS", starts), []string{`server "fake" exited: exit status 7`, "its stderr ended: API_KEY is missing"}},
		{"missing", missing, []string{`command "no-such-command-anywhere"`, "test.json"}},
		{"never ready", fake(t, "FAKE_SLOW_START", "1h"), []string{"was not ready within 300ms", "has not answered as an MCP server", "start-timeout", "test.json"}},
		{"echoes", echoes, []string{"does not speak MCP", "to initialize"}},
		{"closes its output", closes, []string{`server "fake" closed its output and did not exit; it was ended`}},
		{"endless message", endless, []string{`starting server "fake": sent a message longer than 48 MiB`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := proxyFor(t, Options{}, tt.server)
			if tt.name == "never ready" {
				p = proxyFor(t, Options{StartTimeout: 300 * time.Millisecond}, tt.server)
			}
			_, err := p.Tools(t.Context(), "fake")
			mcptest.WantError(t, err, tt.want...)
			if got := p.Servers()[0]; got.Status != "failed" || got.Error != WithoutOutput(err).Error() {
				t.Errorf("status = %+v", got)
			}
		})
	}
	if got := len(lines(starts)); got != 1 {
		t.Errorf("a server that died before it read server/discover was started %d times, want 1", got)
	}
}

// TestOutputOfAServerIsNotForEveryone: what it wrote is in errors that say so, and
// can be left out of them however they are wrapped.
func TestOutputOfAServerIsNotForEveryone(t *testing.T) {
	const told = "stderr is shown by: toolcell servers check fake"
	p := proxyFor(t, Options{}, fake(t, "FAKE_DIE_AT_START", "1"))
	for range 5 { // also of the error that it is not started again yet
		_, err := p.Tools(t.Context(), "fake")
		mcptest.WantError(t, err, "API_KEY is missing")
		mcptest.WantError(t, WithoutOutput(err), told)
		if strings.Contains(WithoutOutput(err).Error(), "API_KEY") {
			t.Errorf("%v has it still", WithoutOutput(err))
		}
	}
	if got := p.Servers()[0].Error; !strings.Contains(got, told) || strings.Contains(got, "API_KEY") {
		t.Errorf("the status says %q", got)
	}
	_, problems, err := p.Search(t.Context(), "anything", 5, false, AnyServer)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0].Reason, told) || strings.Contains(problems[0].Reason, "API_KEY") {
		t.Errorf("a search says %+v, %v", problems, err)
	}

	p = proxyFor(t, Options{}, fake(t))
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "crash"})
	mcptest.WantError(t, err, "out of cheese")
	if short := WithoutOutput(err); !errors.Is(short, ErrCallLost) || strings.Contains(short.Error(), "cheese") ||
		!strings.Contains(short.Error(), "stderr is shown by: the log, with TOOLCELL_LOG_LEVEL=DEBUG") { // another start would not show it
		t.Errorf("%v", short)
	}
	if other := errors.New("another"); WithoutOutput(other).Error() != "another" {
		t.Error("an error without output was changed")
	}
}

func TestConcurrentFirstCallsShareOneStart(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{}, fake(t, "FAKE_STARTS", starts, "FAKE_SLOW_START", "200ms"))
	gone, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Tools(gone, "fake"); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
	})
	eventually(t, "the start", func() bool { return p.Servers()[0].Status == "starting" })
	for range 8 {
		wg.Go(func() { mustCall(t, p, "echo", `{}`) })
	}
	cancel() // must not end the start the others wait for
	wg.Wait()
	if got := len(lines(starts)); got != 1 {
		t.Errorf("%d starts, want 1", got)
	}
}

func TestTenCallsRunInParallel(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { mustCall(t, p, "barrier", `{}`) }) // none is answered before all ten are there
	}
	wg.Wait()
}

func TestCrashDuringCallIsReportedAndNotRepeated(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes, "FAKE_TOKEN", "s3cret-token"))
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "crash"})
	mcptest.WantError(t, err, "may have taken effect", "exited: exit status 3", "out of cheese")
	if !errors.Is(err, ErrCallLost) {
		t.Errorf("%v is not ErrCallLost", err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows a value of the environment: %v", err)
	}
	if got := lines(notes); len(got) != 1 {
		t.Errorf("the tool ran %d times, want 1", len(got))
	}
	if got := p.Servers()[0].Status; got != "failed" {
		t.Errorf("status = %s", got)
	}
	mustCall(t, p, "echo", `{}`) // the next call starts it again
	if got := p.Servers()[0]; got.Status != "ready" || got.Error != "" {
		t.Errorf("after the restart: %+v", got)
	}
}

func TestCloseKillsWholeProcessGroup(t *testing.T) {
	for _, env := range [][]string{nil, {"FAKE_STAY", "1"}} {
		p := proxyFor(t, Options{}, fake(t, env...))
		child := structured[map[string]int](t, mustCall(t, p, "spawn", `{}`))["pid"]
		leader := structured[map[string]int](t, mustCall(t, p, "get-pid", `{}`))["pid"]
		if !alive(child) || !alive(leader) {
			t.Fatal("the processes do not run")
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "end of the group", func() bool { return !alive(child) && !alive(leader) })
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
		mcptest.WantError(t, err, "shut down")
	}
}

func TestCrashKillsWhatTheServerLeftBehind(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	child := structured[map[string]int](t, mustCall(t, p, "spawn", `{}`))["pid"]
	leader := structured[map[string]int](t, mustCall(t, p, "get_pid", `{}`))["pid"]
	if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the child", func() bool { return !alive(child) })
	eventually(t, "status failed", func() bool { return p.Servers()[0].Status == "failed" })
}

func TestIdleServerIsReleasedButNotDuringCall(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{IdleTimeout: 50 * time.Millisecond}, fake(t, "FAKE_STARTS", starts))
	ctx, cancel := context.WithCancel(t.Context())
	hanging := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, CallRequest{Server: "fake", Tool: "hang"})
		hanging <- err
	}()
	eventually(t, "the call", func() bool { return inFlight(p) == 1 })
	u := p.current().upstreams[0]
	u.expire(u.live) // as the idle time would, if it ran
	if got := p.Servers()[0].Status; got != "ready" {
		t.Errorf("during a call the status is %q", got)
	}
	cancel()
	<-hanging
	eventually(t, "release", func() bool { return p.Servers()[0].Status == "idle" })
	if got := p.Servers()[0]; got.Tools == 0 {
		t.Errorf("the tools are forgotten: %+v", got)
	}
	if _, err := p.Tools(t.Context(), "fake"); err != nil || len(lines(starts)) != 1 {
		t.Errorf("known tools started the server again (%v)", err)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestCancelledCallReturnsAndTellsServer(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, CallRequest{Server: "fake", Tool: "hang"})
		done <- err
	}()
	eventually(t, "the call", func() bool { return slices.Contains(lines(notes), "hanging") })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	eventually(t, "notifications/cancelled", func() bool { return slices.Contains(lines(notes), "cancelled") })
	mustCall(t, p, "echo", `{}`)
}

func TestCancelReturnsThoughServerReadsNothing(t *testing.T) {
	p := proxyFor(t, Options{CallTimeout: 300 * time.Millisecond}, fake(t))
	pid := structured[map[string]int](t, mustCall(t, p, "get-pid", `{}`))["pid"]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	big, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 1<<20)}) // more than a pipe holds
	for range 3 {
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Arguments: big})
		mcptest.WantError(t, err, "no answer within 300ms")
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a call after the pause", func() bool {
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
		return err == nil
	})
}

func TestCloseEndsCallsAndStartsInFlight(t *testing.T) {
	slow := fake(t, "FAKE_SLOW_START", "1h")
	slow.Name, slow.Alias = "slow", "slow"
	p := proxyFor(t, Options{}, fake(t), slow)
	mustCall(t, p, "echo", `{}`)
	errs := make(chan error, 2)
	go func() {
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "hang"})
		errs <- err
	}()
	go func() { _, err := p.Tools(t.Context(), "slow"); errs <- err }()
	eventually(t, "both in flight", func() bool {
		return inFlight(p) == 1 && p.Servers()[1].Status == "starting"
	})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mcptest.WantError(t, <-errs, "shut down")
	}
}

func inFlight(p *Proxy) int {
	p.current().upstreams[0].mu.Lock()
	defer p.current().upstreams[0].mu.Unlock()
	return p.current().upstreams[0].calls
}

func TestManyServersWithoutRaces(t *testing.T) {
	var servers []config.Server
	for i := range 4 {
		s := fake(t)
		s.Name = fmt.Sprintf("fake%d", i)
		s.Alias = s.Name
		servers = append(servers, s)
	}
	p := proxyFor(t, Options{IdleTimeout: time.Millisecond}, servers...)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := p.Call(t.Context(), CallRequest{Server: fmt.Sprintf("fake%d", i%4), Tool: "echo"}); err != nil {
				t.Error(err)
			}
			p.Servers()
		})
	}
	wg.Wait()
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real time")
	}
	before := runtime.NumGoroutine()
	p := proxyFor(t, Options{IdleTimeout: time.Hour, discoverTimeout: shortTimeout}, fake(t, "FAKE_DISCOVER", "hang"))
	mustCall(t, p, "echo", `{}`)
	_, _ = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "crash"})
	mustCall(t, p, "spawn", `{}`)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
