package clientconfig_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestRefreshSeesAChangeAtOnce: a change saved before a run is seen by the run,
// although the kernel's event may not have arrived yet.
func TestRefreshSeesAChangeAtOnce(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"0"}`})
	w, changes := watched(t, o)
	for i := range 100 {
		want := fmt.Sprintf("a=%d", i+1)
		mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/a.json"), `{"command":"`+want[2:]+`"}`)
		w.Refresh()
		last := "nothing"
		for len(changes) > 0 {
			last = names(<-changes)
		}
		if last != want {
			t.Fatalf("the last change was %s, want %s", last, want)
		}
	}
}

// TestChangesAreSeenWithoutWatches: a kernel that has no watches left, or no
// inotify instances, only takes away the notice between runs. The limits are
// those of a user namespace: user_namespaces(7).
func TestChangesAreSeenWithoutWatches(t *testing.T) {
	const limit = "TOOLCELL_TEST_INOTIFY_LIMIT"
	if file := os.Getenv(limit); file != "" {
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			t.Skip(err)
		}
		seesWithoutWatches(t, filepath.Base(file) == "max_inotify_watches")
		return
	}
	for _, name := range []string{"max_inotify_watches", "max_inotify_instances"} {
		c := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), limit+"=/proc/sys/user/"+name)
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		switch out, err := c.CombinedOutput(); {
		case c.Process == nil || strings.Contains(string(out), "--- SKIP"):
			t.Skipf("needs a user namespace: %v\n%s", err, out)
		case err != nil || !strings.Contains(string(out), "--- PASS"):
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func seesWithoutWatches(t *testing.T, inotify bool) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`})
	w, changes := watched(t, o)
	if got := w.HasInotify(); got != inotify || w.Watches() != 0 {
		t.Fatalf("inotify is there: %v, with %d watches", got, w.Watches())
	}
	for _, change := range []struct{ file, text, want string }{
		{"MCPs/a.json", `{"command":"22"}`, "a=22"},
		{".cursor/mcp.json", `{"mcpServers":{"b":{"command":"b"}}}`, "a=22 b=b"},
	} {
		mcptest.WriteFile(t, filepath.Join(o.Home, change.file), change.text)
		w.Refresh()
		until(t, changes, change.want)
	}
}
