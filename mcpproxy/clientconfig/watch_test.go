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

// watched is a Watcher whose configs come over a channel.
func watched(t *testing.T, o clientconfig.Options, more ...string) (*clientconfig.Watcher, <-chan config.Config) {
	t.Helper()
	changes := make(chan config.Config, 100)
	w := clientconfig.Watch(t.Context(), o, clientconfig.Discover(o), func(c config.Config) { changes <- c }, more...)
	t.Cleanup(w.Close)
	return w, changes
}

// until waits for the Config with these servers.
func until(t *testing.T, changes <-chan config.Config, want string) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	last := "nothing"
	for {
		select {
		case c := <-changes:
			if last = names(c); last == want {
				return
			}
		case <-timeout:
			t.Fatalf("the last change was %s, want %s", last, want)
		}
	}
}

func TestChangesOfFilesAreNoticed(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"dots/claude.json": `{"mcpServers":{"a":{"command":"1"}}}`})
	claude := filepath.Join(o.Home, ".claude.json")
	if err := os.Symlink("../dots/claude.json", claude); err != nil {
		t.Fatal(err)
	}
	w, changes := watched(t, o)
	if !w.HasInotify() {
		t.Fatal("there is no inotify")
	}
	// The file that a link leads to.
	mcptest.WriteFile(t, filepath.Join(o.Home, "../dots/claude.json"), `{"mcpServers":{"a":{"command":"2"}}}`)
	until(t, changes, "a=2")
	// Replaced by rename, as editors do.
	mcptest.WriteFile(t, claude+".tmp", `{"mcpServers":{"a":{"command":"3"}}}`)
	if err := os.Rename(claude+".tmp", claude); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "a=3")
	// A file in folders that were not there.
	mcptest.WriteFile(t, filepath.Join(o.Home, ".codeium/windsurf/mcp_config.json"), `{"mcpServers":{"b":{"command":"1"}}}`)
	until(t, changes, "a=3 b=1")
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/new.json"), `{"command":"1"}`)
	until(t, changes, "new=1 a=3") // b is the same
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/new.json"), `{"command":"2"}`)
	until(t, changes, "new=2 a=3 b=1")
	if err := os.RemoveAll(filepath.Join(o.Home, ".codeium")); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "new=2 a=3")
	mcptest.WriteFile(t, filepath.Join(o.Home, ".codeium/windsurf/mcp_config.json"), `{"mcpServers":{"b":{"command":"4"}}}`)
	until(t, changes, "new=2 a=3 b=4")
}

func TestTrustAndEnvFilesAreWatchedToo(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/.cursor/mcp.json": `{"mcpServers":{"p":{"command":"p"}}}`,
		"home/.cursor/mcp.json":    `{"mcpServers":{"u":{"command":"u","envFile":"deep/down.env"}}}`,
	})
	_, changes := watched(t, o, trust.File())
	mcptest.WriteFile(t, filepath.Join(o.Home, ".cursor/deep/down.env"), "A=1")
	until(t, changes, "u=u")
	p := clientconfig.Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, true); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "p=p u=u")
	mcptest.WriteFile(t, p.Path, `{"mcpServers":{"p":{"command":"evil"}}}`)
	until(t, changes, "u=u")
}

func TestRefreshSeesChangesWithoutTheKernel(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`})
	w, changes := watched(t, o)
	w.StopInotify(false)
	for _, want := range []string{"a=22", "a=333"} {
		mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/a.json"), `{"command":"`+want[2:]+`"}`)
		w.Refresh()
		until(t, changes, want)
	}
	w.Refresh()
	if len(changes) != 0 {
		t.Errorf("a change that is none: %s", names(<-changes))
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
	w, changes := watched(t, o)
	w.StopInotify(true) // after the first look
	entry := func(name, command string) string {
		return `{"mcpServers":{"` + name + `":{"command":"` + command + `"}}}`
	}
	for _, change := range []struct{ file, text, want string }{
		{"home/MCPs/a.json", `{"command":"22"}`, "a=22"},
		{"home/MCPs/b.json", `{"command":"b"}`, "a=22 b=b"},
		{"home/.cursor/mcp.json", entry("c", "c"), "a=22 b=b c=c"},
		{"home/.cursor/mcp.json", entry("c", "333"), "a=22 b=b c=333"},
		{"away/later.json", entry("d", "d"), "a=22 b=b c=333 d=d"},
		{"away/later/windsurf/mcp_config.json", entry("e", "e"), "a=22 b=b c=333 d=d e=e"},
		{"home/.config/Code/User/mcp.json", `{"servers":{"f":{"command":"f"}}}`, "a=22 b=b c=333 d=d e=e f=f"},
	} {
		w.Settle()
		w.Refresh()
		if len(changes) != 0 {
			t.Fatalf("before %s: %s", change.file, names(<-changes))
		}
		mcptest.WriteFile(t, filepath.Join(o.Home, "..", change.file), change.text)
		w.Refresh()
		if len(changes) != 1 {
			t.Fatalf("after %s: %d changes", change.file, len(changes))
		}
		if got := <-changes; !sameServers(names(got), change.want) {
			t.Errorf("after %s: %s, want %s", change.file, names(got), change.want)
		}
	}
	w.Settle()
	if err := os.Remove(filepath.Join(o.Home, ".cursor/mcp.json")); err != nil {
		t.Fatal(err)
	}
	w.Refresh()
	until(t, changes, names(clientconfig.Discover(o)))
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
	w, changes := watched(t, o)
	mcptest.WriteFile(t, filepath.Join(o.Home, ".claude.json"), `{"numStartups":2,"mcpServers":{"a":{"command":"1"}}}`)
	w.Refresh()
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/b.json"), `{"command":"2"}`)
	until(t, changes, "b=2 a=1")
	w.Close()
	if len(changes) != 0 {
		t.Errorf("another change came: %s", names(<-changes))
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
	w := clientconfig.Watch(b.Context(), o, clientconfig.Discover(o), func(config.Config) {})
	defer w.Close()
	time.Sleep(clientconfig.Coarse + time.Second) // as most of the time nothing has changed just now
	w.Refresh()
	for b.Loop() {
		w.Refresh()
	}
	settled, looks := w.Looks()
	if !settled || looks < 20 {
		b.Errorf("settled %v, %d are looked at", settled, looks)
	}
	b.ReportMetric(float64(looks), "paths")
}
