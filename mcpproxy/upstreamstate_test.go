package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestBackoffGrowsIsBoundedAndForgives(t *testing.T) {
	now := time.Unix(1000, 0)
	var b backoff
	for _, want := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		b.failed(now, 0)
		if got := b.pause(now); got != want {
			t.Errorf("pause = %v, want %v", got, want)
		}
	}
	for range 100 {
		b.failed(now, 0)
	}
	if got := b.pause(now); got != longPause {
		t.Errorf("after many failures the pause is %v", got)
	}
	b.failed(now, livedWell)
	if got := b.pause(now); got != firstPause {
		t.Errorf("after a long life the pause is %v", got)
	}
}

func TestCallDuringBackoffFailsAtOnceAndSaysWhy(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{}, fake(t, "FAKE_DIE_AT_START", "1", "FAKE_STARTS", starts))
	for range 4 { // 0, 250, 500 and 1000 ms apart
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
		mcptest.WantError(t, err, "exited: exit status 7", "API_KEY is missing")
	}
	begun := time.Now()
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, `server "fake" failed and is not started again before 2s have passed`, "exit status 7", "API_KEY is missing")
	if took := time.Since(begun); took >= 2*time.Second { // it did not wait
		t.Errorf("it took %v", took)
	}
	if got := len(lines(starts)); got != 4 {
		t.Errorf("%d starts, want 4", got)
	}
}

func TestMissingCommandIsTriedAgainAtOnce(t *testing.T) {
	s := fake(t)
	dir := t.TempDir()
	real := s.Command
	s.Command = filepath.Join(dir, "later")
	p := proxyFor(t, Options{}, s)
	for range 10 {
		_, err := p.Tools(t.Context(), "fake")
		mcptest.WantError(t, err, `starting server "fake": command`, "install it or correct test.json")
	}
	if err := os.Symlink(real, s.Command); err != nil {
		t.Fatal(err)
	}
	mustCall(t, p, "echo", `{}`)
}

func TestCallsOfOneServerAreLimitedAndWaitInOrder(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	other := fake(t)
	other.Name, other.Alias = "other", "other"
	p := proxyFor(t, Options{CallsAtOnce: 2}, fake(t, "FAKE_NOTES", notes), other)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _, _ = p.Call(ctx, CallRequest{Server: "fake", Tool: "hang"}) })
	}
	eventually(t, "both calls", func() bool { return len(lines(notes)) == 2 })
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err := p.Call(short, CallRequest{Server: "fake", Tool: "echo"})
	mcptest.WantError(t, err, `waiting for other calls of server "fake" to end`, "deadline")
	if _, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "echo"}); err != nil {
		t.Errorf("another server: %v", err)
	}
	cancel()
	wg.Wait()
	mustCall(t, p, "echo", `{}`)
}

func TestTimesOfTheEntryGoBeforeTheProgramsOwn(t *testing.T) {
	slow := fake(t, "FAKE_SLOW_START", "1h")
	slow.StartTimeout = 200 * time.Millisecond
	hangs := fake(t)
	hangs.Name, hangs.Alias, hangs.CallTimeout = "hangs", "hangs", 200*time.Millisecond
	p := proxyFor(t, Options{CallTimeout: time.Hour}, slow, hangs)
	_, err := p.Tools(t.Context(), "fake")
	mcptest.WantError(t, err, "was not ready within 200ms")
	_, err = p.Call(t.Context(), CallRequest{Server: "hangs", Tool: "hang"})
	mcptest.WantError(t, err, "no answer within 200ms")
}

func TestUpdateKeepsWhatDidNotChange(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts")
	named := func(name string, env ...string) config.Server {
		s := fake(t, append(env, "FAKE_STARTS", starts)...)
		s.Name, s.Alias = name, pyname.Identifier(name)
		return s
	}
	kept, changed, removed := named("kept"), named("changed"), named("removed")
	p := proxyFor(t, Options{}, kept, changed, removed)
	pid := func(server string) int {
		t.Helper()
		answer, err := p.Call(t.Context(), CallRequest{Server: server, Tool: "get_pid"})
		if err != nil {
			t.Fatal(err)
		}
		return structured[map[string]int](t, string(answer.JSON))["pid"]
	}
	before := map[string]int{}
	for _, name := range []string{"kept", "changed", "removed"} {
		before[name] = pid(name)
	}
	kept.Description, kept.Source, kept.Alias = "new words", "other.json", "another_alias"
	clash := named("KEPT")
	p.Update(config.Config{Servers: []config.Server{clash, kept, named("changed", "FAKE_LOGS", "1")}})

	if got := pid("kept"); got != before["kept"] {
		t.Errorf("the server that did not change was started again")
	}
	if s, err := p.Lookup("kept"); err != nil || s.Alias != "kept" || s.Description != "new words" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := p.Lookup("KEPT"); err != nil || s.Alias == "kept" {
		t.Errorf("the new server has the alias %q, %v", s.Alias, err)
	}
	eventually(t, "the old ones to end", func() bool { return !alive(before["changed"]) && !alive(before["removed"]) })
	if got := pid("changed"); got == before["changed"] {
		t.Error("the server that changed was not started again")
	}
	_, err := p.Call(t.Context(), CallRequest{Server: "removed", Tool: "echo"})
	mcptest.WantError(t, err, `there is no server "removed"`)
}

func TestUpdateLetsCallsInFlightEnd(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	pid := structured[map[string]int](t, mustCall(t, p, "get_pid", `{}`))["pid"]
	go func() {
		_, err := p.Call(ctx, CallRequest{Server: "fake", Tool: "hang"})
		ended <- err
	}()
	eventually(t, "the call", func() bool { return len(lines(notes)) == 1 })
	p.Update(config.Config{})
	select {
	case err := <-ended:
		t.Fatalf("the call ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if !alive(pid) {
		t.Error("the server ended under its call")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	eventually(t, "the server to end", func() bool { return !alive(pid) })
}

func TestUpdateMayComeAtAnyTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var configs []config.Config
	for i := range 3 {
		s := fake(t, "FAKE_ROUND", fmt.Sprint(i/2))
		s.Description = fmt.Sprint(i)
		configs = append(configs, config.Config{Servers: []config.Server{s}})
	}
	p := proxyFor(t, Options{IdleTimeout: time.Millisecond}, configs[0].Servers...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p.Update(configs[i%3])
			p.Servers()
			_, _, _ = p.Search(ctx, "echo", 1, false, AnyServer)
			time.Sleep(20 * time.Millisecond) // paces the load
		}
	})
	wg.Wait()
	_ = p.Close()
	p.Update(configs[0]) // too late, and harmless
}

// TestResultsWithSecretsThatStayAreLeftOut: a secret across values cannot be replaced.
func TestResultsWithSecretsThatStayAreLeftOut(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t, "FAKE_TOKEN", `s3cret"},{"more":"x`))
	res, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "leak-result"})
	if len(res.JSON) > 0 {
		t.Errorf("the result is %s", res.JSON)
	}
	mcptest.WantError(t, err, `calling tool "leak-result" of server "fake"`, "the tool failed", "a secret of the server's entry")
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error has the secret: %v", err)
	}
}

// TestTheRecordKeepsPlainWords of an entry, whereas error texts have none of its values.
func TestTheRecordKeepsPlainWords(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t, "FAKE_TOKEN", "s3cret-token", "NODE_ENV", "production"))
	if got := p.WithoutSecrets("s3cret-token in production"); got != "[hidden:FAKE_TOKEN] in production" {
		t.Error(got)
	}
}

func TestSecretsAreTakenOutOfEveryErrorText(t *testing.T) {
	s := fake(t, "FAKE_TOKEN", "s3cret-token", "FAKE_SHORT", "on")
	s.Args = []string{"--api-key", "argument-secret", "--password=joined-secret"}
	p := proxyFor(t, Options{}, s)
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "leak"})
	mcptest.WantError(t, err, "tool refused: [FAKE_TOKEN]", "on") // an error of the protocol
	raw := mustCall(t, p, "leak-result", `{}`)
	if strings.Contains(raw, "s3cret") || !strings.Contains(raw, "[FAKE_TOKEN]") {
		t.Errorf("the error of the tool is %s", raw)
	}
	_, err = p.Call(t.Context(), CallRequest{Server: "fake", Tool: "crash"})
	mcptest.WantError(t, err, "out of cheese")
	for _, secret := range []string{"s3cret-token", "argument-secret", "joined-secret"} {
		status, _ := json.Marshal(p.Servers())
		if strings.Contains(err.Error()+string(status), secret) {
			t.Errorf("%q is shown: %v %s", secret, err, status)
		}
	}

	web := web(t, config.HTTP, answers(status(500, "text/plain", "key url-secret-1 and head-secret-2, id path-secret-0123456789")))
	web.Name, web.Alias = "web", "web"
	web.URL += "/path-secret-0123456789?api=url-secret-1"
	web.Headers = map[string]string{"X-Key": "head-secret-2"}
	p.Update(config.Config{Servers: []config.Server{web}})
	_, err = p.Call(t.Context(), CallRequest{Server: "web", Tool: "bad"})
	mcptest.WantError(t, err, "key [api] and [X-Key], id [path]")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	web.URL = "http://127.0.0.1:1/path-secret-0123456789?api=url-secret-1"
	p.Update(config.Config{Servers: []config.Server{web}})
	_, err = p.Tools(t.Context(), "web")
	mcptest.WantError(t, err, "cannot reach http://127.0.0.1:1")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestProgressIsPassedOnOverStdioWithinBounds(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	count, last := 0, 0.0
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "progress", Progress: func(done, total float64, text string) {
		if done <= last || total != 10_000 || text != "working" {
			t.Errorf("%v of %v %q after %v", done, total, text, last)
		}
		count, last = count+1, done
	}})
	if err != nil || count == 0 || count > 200 {
		t.Errorf("%d notes of progress, %v", count, err)
	}
	mustCall(t, p, "progress", `{}`) // without a listener no token is sent
}

func TestFloodsOfAServerHurtNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	other := fake(t)
	other.Name, other.Alias = "other", "other"
	p := proxyFor(t, Options{}, fake(t, "FAKE_FLOOD", "1"), other)
	for range 20 { // while notifications and pings come without end
		mustCall(t, p, "echo", `{}`)
		begun := time.Now()
		if _, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "echo"}); err != nil || time.Since(begun) > 10*time.Second {
			t.Fatalf("the other server: %v after %v", err, time.Since(begun))
		}
	}
}

func TestGiantAnswerEndsOnlyItsServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	other := fake(t)
	other.Name, other.Alias = "other", "other"
	p := proxyFor(t, Options{}, fake(t), other)
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "giant"}) // 200 MB
	mcptest.WantError(t, err, "lost", "sent a message longer than 48 MiB")
	if _, err := p.Call(t.Context(), CallRequest{Server: "other", Tool: "echo"}); err != nil {
		t.Error(err)
	}
	mustCall(t, p, "echo", `{}`)
}
