package clientconfig_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// watched returns a Watcher, and what refreshes it and returns the names of the servers
// if they have changed.
func watched(t *testing.T, o clientconfig.Options, more ...string) (w *clientconfig.Watcher, refresh func() string) {
	t.Helper()
	w = clientconfig.Watch(o, more...)
	return w, func() (changed string) {
		t.Helper()
		w.Refresh(func(c config.Config) { changed = names(c) })
		if now := names(w.Config()); changed != "" && changed != now {
			t.Errorf("told of %s, and has %s", changed, now)
		}
		return changed
	}
}

func TestChangesOfFilesAreNoticed(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"dots/claude.json": `{"mcpServers":{"a":{"command":"1"}}}`})
	claude := filepath.Join(o.Home, ".claude.json")
	if err := os.Symlink("../dots/claude.json", claude); err != nil {
		t.Fatal(err)
	}
	_, refresh := watched(t, o)
	put := func(name, text string) func() error {
		return func() error { mcptest.WriteFile(t, filepath.Join(o.Home, name), text); return nil }
	}
	windsurf := ".codeium/windsurf/mcp_config.json"
	for _, step := range []struct {
		what   string
		change func() error
		want   string
	}{
		{"the file that a link leads to", put("../dots/claude.json", `{"mcpServers":{"a":{"command":"2"}}}`), "a=2"},
		{"replaced by rename, as editors do", func() error {
			mcptest.WriteFile(t, claude+".tmp", `{"mcpServers":{"a":{"command":"3"}}}`)
			return os.Rename(claude+".tmp", claude)
		}, "a=3"},
		{"in folders that were not there", put(windsurf, `{"mcpServers":{"b":{"command":"1"}}}`), "a=3 b=1"},
		{"a file in a folder of files", put("MCPs/new.json", `{"command":"1"}`), "new=1 a=3"}, // b is the same
		{"again", put("MCPs/new.json", `{"command":"2"}`), "new=2 a=3 b=1"},
		{"folders removed", func() error { return os.RemoveAll(filepath.Join(o.Home, ".codeium")) }, "new=2 a=3"},
		{"and back", put(windsurf, `{"mcpServers":{"b":{"command":"4"}}}`), "new=2 a=3 b=4"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got := refresh(); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
}

func TestTrustAndEnvFilesAreWatchedToo(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/.cursor/mcp.json": `{"mcpServers":{"p":{"command":"p"}}}`,
		"home/.cursor/mcp.json":    `{"mcpServers":{"u":{"command":"u","envFile":"deep/down.env"}}}`,
	})
	_, refresh := watched(t, o, trust.File())
	expect := func(want string) {
		t.Helper()
		if got := refresh(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	mcptest.WriteFile(t, filepath.Join(o.Home, ".cursor/deep/down.env"), "A=1")
	expect("u=u")
	p := clientconfig.Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, true); err != nil {
		t.Fatal(err)
	}
	expect("p=p u=u")
	mcptest.WriteFile(t, p.Path, `{"mcpServers":{"p":{"command":"evil"}}}`)
	expect("u=u")
}

func TestRefreshSeesAChangeAtOnce(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"0"}`})
	_, refresh := watched(t, o)
	for i := range 20 {
		want := fmt.Sprintf("a=%d", i+1)
		mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/a.json"), `{"command":"`+want[2:]+`"}`)
		if got := refresh(); got != want {
			t.Fatalf("the last change was %q, want %s", got, want)
		}
		if got := refresh(); got != "" {
			t.Fatalf("a change that is none: %s", got)
		}
	}
}

// TestFilesOfJustNowAreReadAgain: a change of the same size within a step of the clock
// does not show. A variable stands for it.
func TestFilesOfJustNowAreReadAgain(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"${X}"}`})
	x := "1"
	o.Getenv = func(string) string { return x }
	w, refresh := watched(t, o)
	x = "2"
	if got := refresh(); got != "a=2" {
		t.Errorf("after a step of the clock: %q", got)
	}
	w.Settle()
	x = "3"
	if got := refresh(); got != "" {
		t.Errorf("a file of long ago was read again: %s", got)
	}
}

// TestRefreshOfSettledFiles: what a Refresh does not ask for again, it learns of
// from the folders.
func TestRefreshOfSettledFiles(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`, "away/empty": ""})
	away := filepath.Join(o.Home, "../away")
	link := func(to, from string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o700), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(away, "later.json"), filepath.Join(o.Home, ".claude.json"))
	link(filepath.Join(away, "later"), filepath.Join(o.Home, ".codeium"))
	w, refresh := watched(t, o)
	entry := func(name, command string) string {
		return `{"mcpServers":{"` + name + `":{"command":"` + command + `"}}}`
	}
	for _, change := range []struct{ file, text, want string }{
		{"home/MCPs/a.json", `{"command":"22"}`, "a=22"},
		{"home/MCPs/b.json", `{"command":"b"}`, "a=22 b=b"},
		{"home/.cursor/other", "", ""}, // the folder is there before the file
		{"home/.cursor/mcp.json", entry("c", "c"), "a=22 b=b c=c"},
		{"home/.cursor/mcp.json", entry("c", "333"), "a=22 b=b c=333"},
		{"away/later.json", entry("d", "d"), "a=22 b=b c=333 d=d"},
		{"away/later/windsurf/mcp_config.json", entry("e", "e"), "a=22 b=b c=333 d=d e=e"},
		{"home/.config/Code/User/mcp.json", `{"servers":{"f":{"command":"f"}}}`, "a=22 b=b c=333 d=d e=e f=f"},
	} {
		w.Settle()
		if got := refresh(); got != "" {
			t.Fatalf("before %s: %s", change.file, got)
		}
		mcptest.WriteFile(t, filepath.Join(o.Home, "..", change.file), change.text)
		if got := refresh(); !sameServers(got, change.want) {
			t.Errorf("after %s: %s, want %s", change.file, got, change.want)
		}
	}
	w.Settle()
	if err := os.Remove(filepath.Join(o.Home, ".cursor/mcp.json")); err != nil {
		t.Fatal(err)
	}
	if got, want := refresh(), names(clientconfig.Discover(o)); got != want || got == "" {
		t.Errorf("after the end of a file: %s, want %s", got, want)
	}
	if settled, seen := w.Looks(); settled || seen > 20 {
		t.Errorf("settled %v, %d are looked at", settled, seen)
	}
}

// sameServers compares lists of servers, whatever their order.
func sameServers(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

func TestSameConfigIsNoChange(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/.claude.json": `{"numStartups":1,"mcpServers":{"a":{"command":"1"}}}`})
	_, refresh := watched(t, o)
	mcptest.WriteFile(t, filepath.Join(o.Home, ".claude.json"), `{"numStartups":2,"mcpServers":{"a":{"command":"1"}}}`)
	if got := refresh(); got != "" {
		t.Errorf("a change that is none: %s", got)
	}
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/b.json"), `{"command":"2"}`)
	if got := refresh(); got != "b=2 a=1" {
		t.Errorf("%q", got)
	}
}

// TestPanickedChangeIsToldAgain: no run goes on with what was before.
func TestPanickedChangeIsToldAgain(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`})
	w, refresh := watched(t, o)
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/a.json"), `{"command":"22"}`)
	w.Settle()
	func() {
		defer func() { _ = recover() }()
		w.Refresh(func(config.Config) { panic("as it is told") })
	}()
	if got := refresh(); got != "a=22" {
		t.Errorf("%q", got)
	}
}

// BenchmarkRefresh looks at what a user of many clients has: ten files of
// clients and ten of a folder, and the folders that they are in.
func BenchmarkRefresh(b *testing.B) {
	home := b.TempDir()
	for i, file := range []string{
		".claude.json", ".cursor/mcp.json", ".codeium/windsurf/mcp_config.json", ".config/Code/User/mcp.json", ".gemini/settings.json",
		".config/zed/settings.json", ".lmstudio/mcp.json", ".copilot/mcp-config.json", "project/.mcp.json", "project/.cursor/mcp.json",
	} {
		mcptest.WriteFile(b, filepath.Join(home, file), fmt.Sprintf(`{"mcpServers":{"client%d":{"command":"x"}}}`, i))
		mcptest.WriteFile(b, filepath.Join(home, "MCPs", fmt.Sprintf("server%d.json", i)), `{"command":"x"}`)
	}
	o := clientconfig.Options{Home: home, Dir: filepath.Join(home, "project")}
	w, none := clientconfig.Watch(o), func(config.Config) {}
	time.Sleep(3 * time.Second) // as most of the time nothing has changed just now
	w.Refresh(none)
	for b.Loop() {
		w.Refresh(none)
	}
	settled, looks := w.Looks()
	if !settled || looks < 20 {
		b.Errorf("settled %v, %d are looked at", settled, looks)
	}
	b.ReportMetric(float64(looks), "paths")
}
