package mcpproxy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watched is a Watcher whose configs come over a channel.
func watched(t *testing.T, o DiscoverOptions, more ...string) (*Watcher, <-chan Config) {
	t.Helper()
	changes := make(chan Config, 100)
	w := Watch(t.Context(), o, Discover(o), func(c Config) { changes <- c }, more...)
	t.Cleanup(w.Close)
	return w, changes
}

// until waits for the Config with these servers.
func until(t *testing.T, changes <-chan Config, want string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
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

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfFilesAreNoticed(t *testing.T) {
	o := site(t, map[string]string{"dots/claude.json": `{"mcpServers":{"a":{"command":"1"}}}`})
	claude := filepath.Join(o.Home, ".claude.json")
	if err := os.Symlink("../dots/claude.json", claude); err != nil {
		t.Fatal(err)
	}
	w, changes := watched(t, o)
	if w.fs == nil {
		t.Fatal("there is no inotify")
	}
	// The file that a link leads to.
	writeFile(t, filepath.Join(o.Home, "../dots/claude.json"), `{"mcpServers":{"a":{"command":"2"}}}`)
	until(t, changes, "a=2")
	// Replaced by rename, as editors do.
	writeFile(t, claude+".tmp", `{"mcpServers":{"a":{"command":"3"}}}`)
	if err := os.Rename(claude+".tmp", claude); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "a=3")
	// A file in folders that were not there.
	writeFile(t, filepath.Join(o.Home, ".codeium/windsurf/mcp_config.json"), `{"mcpServers":{"b":{"command":"1"}}}`)
	until(t, changes, "a=3 b=1")
	writeFile(t, filepath.Join(o.Home, "MCPs/new.json"), `{"command":"1"}`)
	until(t, changes, "new=1 a=3") // b is the same
	writeFile(t, filepath.Join(o.Home, "MCPs/new.json"), `{"command":"2"}`)
	until(t, changes, "new=2 a=3 b=1")
	if err := os.RemoveAll(filepath.Join(o.Home, ".codeium")); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "new=2 a=3")
	writeFile(t, filepath.Join(o.Home, ".codeium/windsurf/mcp_config.json"), `{"mcpServers":{"b":{"command":"4"}}}`)
	until(t, changes, "new=2 a=3 b=4")
}

func TestTrustAndEnvFilesAreWatchedToo(t *testing.T) {
	o, trust := trusting(t, map[string]string{
		"project/.cursor/mcp.json": `{"mcpServers":{"p":{"command":"p"}}}`,
		"home/.cursor/mcp.json":    `{"mcpServers":{"u":{"command":"u","envFile":"deep/down.env"}}}`,
	})
	_, changes := watched(t, o, trust.File())
	writeFile(t, filepath.Join(o.Home, ".cursor/deep/down.env"), "A=1")
	until(t, changes, "u=u")
	p := Discover(o).Projects[0]
	if err := trust.Set(p.Path, p.Sum, true); err != nil {
		t.Fatal(err)
	}
	until(t, changes, "p=p u=u")
	writeFile(t, p.Path, `{"mcpServers":{"p":{"command":"evil"}}}`)
	until(t, changes, "u=u")
}

func TestRefreshSeesChangesWithoutTheKernel(t *testing.T) {
	o := site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`})
	w, changes := watched(t, o)
	if w.fs != nil {
		w.fs.Close() // from now on it tells nothing
	}
	for _, want := range []string{"a=22", "a=333"} {
		writeFile(t, filepath.Join(o.Home, "MCPs/a.json"), `{"command":"`+want[2:]+`"}`)
		w.Refresh()
		until(t, changes, want)
	}
	w.Refresh()
	if len(changes) != 0 {
		t.Errorf("a change that is none: %s", names(<-changes))
	}
}

func TestSameConfigIsNoChange(t *testing.T) {
	o := site(t, map[string]string{"home/.claude.json": `{"numStartups":1,"mcpServers":{"a":{"command":"1"}}}`})
	w, changes := watched(t, o)
	writeFile(t, filepath.Join(o.Home, ".claude.json"), `{"numStartups":2,"mcpServers":{"a":{"command":"1"}}}`)
	w.Refresh()
	writeFile(t, filepath.Join(o.Home, "MCPs/b.json"), `{"command":"2"}`)
	until(t, changes, "b=2 a=1")
	w.Close()
	if len(changes) != 0 {
		t.Errorf("another change came: %s", names(<-changes))
	}
}

func BenchmarkRefresh(b *testing.B) {
	home := b.TempDir()
	o := DiscoverOptions{Home: home, Dir: filepath.Join(home, "project")}
	w := Watch(b.Context(), o, Discover(o), func(Config) {})
	defer w.Close()
	for b.Loop() {
		w.Refresh()
	}
}
