package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPurgeLeavesNothing: find sees the same before the installation and after purge, and status has
// the sizes that du has.
func TestPurgeLeavesNothing(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		n := newNewcomer(t, h)
		before := n.find(t)
		n.must(t, 0, "no client has toolcell in its config", "status")
		n.must(t, 0, "", "purge", "--dry-run")
		n.wantFiles(t, before)
		if h.name == "user" { // an image with layers, whose sandboxes have subordinate IDs
			n.env["TOOLCELL_IMAGE"] = registry(t, "", "", "minimal") + "minimal-slim"
		}
		n.use(t)
		n.must(t, 0, "", "install", "cursor", "--project")
		var disk map[string]diskUse
		waitFor(t, "the sizes of du", func() bool { // a run may leave work on its image
			var total int64
			disk, total = n.disk(t)
			return total == n.du(t, disk)
		})
		for kind, folder := range map[string]string{
			"images": ".cache/toolcell/images", "runner": ".cache/toolcell/runner", "saved tools": ".local/state/toolcell/tools",
			"files of runs": ".local/state/toolcell/runs",
		} {
			if u, want := disk[kind], du(t, filepath.Join(n.home, folder)); u.Bytes != want {
				t.Errorf("%s: %+v, want %d bytes", kind, u, want)
			}
		}
		var copied int64 // by install, unless the program stays where it is
		if _, err := os.Stat(filepath.Join(n.home, ".local/share/toolcell/bin/toolcell")); err == nil {
			copied = 2 // with its lock
		}
		for kind, want := range map[string]int64{"saved tools": 1, "files of runs": 1, "your own files": 2, "program": copied, "runner": 1} {
			if disk[kind].Count != want {
				t.Errorf("%s: %+v, want %d", kind, disk[kind], want)
			}
		}
		used := n.find(t)
		out := n.must(t, 0, "nothing was removed: this was a dry run", "purge", "--dry-run")
		for _, want := range []string{
			"entry of cursor: " + n.home + "/.cursor/mcp.json\n", "1 saved tool", "the files of 1 run", "policy.toml", "servers/cursor.json", "ON DISK", "images ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("a dry run does not say %q:\n%s", want, out)
			}
		}
		n.must(t, exitUsage, "needs --yes", "purge")
		n.must(t, exitUsage, "needs --yes", "purge", "--json")
		n.wantFiles(t, used)

		out = n.must(t, 0, "to remove the program itself: ", "purge", "--yes")
		if !strings.Contains(out, "put back: 1 server") {
			t.Error(out)
		}
		n.wantFiles(t, before)
		n.must(t, 0, "to remove the program itself: ", "purge", "--yes")
		n.wantFiles(t, before)
	})
}

// TestPurgeAsksOnATerminal, and only yes removes anything.
func TestPurgeAsksOnATerminal(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	before := n.find(t)
	n.put(t, ".config/toolcell/policy.toml", "")
	n.put(t, ".local/state/toolcell/tools/global/a.py", "")
	used := n.find(t)
	for _, answer := range []string{"n", "", "yep"} {
		p := atTerminal(t, n.command(t, n.env, "purge"), 100)
		p.sees("This cannot be undone. You lose 1 saved tool, your own files in")
		p.sees("Remove all of this? [y/N] ")
		p.enters(answer+"\r", "nothing was removed")
		if code := p.leaves(); code != exitFail {
			t.Errorf("%q: exit %d", answer, code)
		}
		n.wantFiles(t, used)
	}
	p := atTerminal(t, n.command(t, n.env, "purge"), 100)
	p.sees("[y/N] ")
	p.enters("y\r", "removed: saved tools")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
	n.wantFiles(t, before)
}

// TestPurgeRefusesWhileServeRuns, and names it; status shows the process, and what it asks. Whatever
// serve has left goes once it has ended, from the folders of XDG and from one that has all of it.
func TestPurgeRefusesWhileServeRuns(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		for _, one := range []string{"", "one"} {
			n := newNewcomer(t, h)
			before := n.find(t)
			if one != "" {
				n.env["TOOLCELL_STATE_DIR"] = filepath.Join(n.home, one)
			}
			n.use(t)
			n.put(t, ".config/toolcell/policy.toml", "[servers.github]\nask = 'create_*'")
			n.env["TOOLCELL_SERVERS_CONFIG"] = fakeConfig(t, nil)
			c := n.serve(t, n.env)
			c.call(t, map[string]any{"code": "1", "session": "kept"})
			if r := c.python(t, createTwo, "github"); r.status() != "approval_needed" {
				t.Fatalf("%s: %s", r.status(), r.text)
			}
			n.refused(t, c.cmd.Process.Pid)
			n.must(t, 0, "denied", "approvals", "deny", questions(t, n.host, n.env)[0].ID)
			c.Close()
			n.must(t, 0, "freed", "purge", "--yes")
			n.wantFiles(t, before)
		}
	})
}

// TestPurgeSeesServeWithAnotherRuntimeFolder: a client may have a variable that the shell lacks.
func TestPurgeSeesServeWithAnotherRuntimeFolder(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	n.put(t, "runtime/x", "")
	e := maps.Clone(n.env)
	e["XDG_RUNTIME_DIR"] = n.home + "/runtime"
	c := n.serve(t, e)
	n.must(t, exitFail, "nothing was removed: toolcell serve (PID "+strconv.Itoa(c.cmd.Process.Pid), "purge", "--yes")
	n.must(t, 0, strconv.Itoa(c.cmd.Process.Pid)+"  serve", "status")
	c.Close()
	n.must(t, 0, "freed", "purge", "--yes")
}

// refused fails the test unless purge changes nothing while a process runs.
func (n *newcomer) refused(t *testing.T, pid int) {
	t.Helper()
	out := n.must(t, 0, "questions  1 is waiting for you: github.create_issue", "status")
	if !strings.Contains(out, strconv.Itoa(pid)+"  serve") || !strings.Contains(out, "policy     "+n.home+"/.config/toolcell/policy.toml\n") {
		t.Errorf("process %d is not in\n%s", pid, out)
	}
	files := func() (names []string) { // without those that serve itself may be writing
		for name := range n.find(t) {
			if !strings.HasPrefix(name, "/.cache/") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	before := files()
	for _, args := range [][]string{{"purge", "--yes"}, {"purge", "--yes", "--json"}} {
		n.must(t, exitFail, "kill "+strconv.Itoa(pid), args...)
	}
	n.must(t, 0, "nothing can be removed: toolcell serve (PID "+strconv.Itoa(pid), "purge", "--dry-run")
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("there are %q, were %q", after, before)
	}
}

// TestPurgeGoesOnAfterAFailure: what it could not do is named, moved servers are not lost, and the
// next purge does it.
func TestPurgeGoesOnAfterAFailure(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	before := n.find(t)
	n.use(t)
	file := filepath.Join(n.home, ".cursor/mcp.json")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	out := n.must(t, exitFail, "is read-only", "purge", "--yes")
	if !regexp.MustCompile(`(?m)^freed .+, left .+$`).MatchString(out) {
		t.Errorf("it does not say that something stays: %s", out)
	}
	left := n.find(t)
	for _, name := range []string{"/.config/toolcell/servers/cursor.json", "/.local/state/toolcell/installs.json", "/.cursor/mcp.json.before-toolcell"} {
		if _, ok := left[name]; !ok {
			t.Errorf("%s is needed to undo the installation, and has gone", name)
		}
	}
	for _, name := range []string{"/.config/toolcell/policy.toml", "/.cache", "/.local/state/toolcell/tools", "/.local/state/toolcell/run"} {
		if _, ok := left[name]; ok {
			t.Errorf("%s is still there", name)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	n.must(t, 0, "put back: 1 server", "purge", "--yes")
	n.wantFiles(t, before)
}

// A hostile is a layout of files in which purge has to take care.
type hostile struct {
	spoil func(t *testing.T, n *newcomer)
	says  string // ~ is the home folder
	code  int
	stays []string // what is left, beside what was there before
}

// hostiles are links out of the folders, the home as the state folder, folders that are closed, or
// another user's.
func hostiles() map[string]hostile {
	return map[string]hostile{
		"links to the home": {spoil: func(t *testing.T, n *newcomer) {
			n.put(t, ".cache/toolcell/images/x", "")
			n.link(t, n.home, ".cache/toolcell/packages")
			n.link(t, n.home, ".cache/toolcell/images/rootfs")
			n.link(t, n.home+"/letter.txt", ".cache/toolcell/letter")
		}, says: "removed: images"},
		"a link as the cache": {spoil: func(t *testing.T, n *newcomer) {
			n.put(t, ".cache/x", "mine")
			n.link(t, n.home, ".cache/toolcell")
		}, says: "~/.cache/toolcell is a link, which is not followed", stays: []string{"/.cache", "/.cache/x", "/.cache/toolcell"}},
		"the home is the state folder": {
			spoil: func(t *testing.T, n *newcomer) {
				n.env["TOOLCELL_STATE_DIR"] = n.home
				n.put(t, "cache/mine.txt", "mine")
				n.put(t, "cache/images/holiday.jpg", "mine")
				n.put(t, "state/taxes.pdf", "mine")
				n.must(t, 0, "2", "exec", "-q", "-c", "1+1")
			}, says: "~/cache/images/holiday.jpg",
			stays: []string{"/cache", "/cache/mine.txt", "/cache/images", "/cache/images/holiday.jpg", "/state", "/state/taxes.pdf"},
		},
		"closed folders": {spoil: func(t *testing.T, n *newcomer) {
			n.put(t, ".cache/toolcell/images/rootfs/sha256-1/root/closed/file", "x")
			n.put(t, ".cache/toolcell/images/rootfs/sha256-1/root/readonly/file", "x")
			root := filepath.Join(n.home, ".cache/toolcell/images/rootfs/sha256-1/root")
			err := errors.Join(os.Chmod(root+"/closed", 0), os.Chmod(root+"/readonly", 0o555), os.Chmod(root, 0o555), os.Chmod(n.home+"/.cache/toolcell", 0o500))
			if err != nil {
				t.Fatal(err)
			}
		}, says: "removed: images"},
		"a folder of another user": {
			spoil: func(t *testing.T, n *newcomer) {
				if os.Geteuid() != 0 {
					t.Skip("needs root, to give a folder away")
				}
				n.put(t, ".cache/toolcell/images/rootfs/a/file", "x")
				n.put(t, ".cache/toolcell/runner/runner-1/run.py", "x")
				if err := os.Chown(n.home+"/.cache/toolcell/images/rootfs/a", 0, 0); err != nil {
					t.Fatal(err)
				}
			}, says: "~/.cache/toolcell/images/rootfs/a/file: permission denied", code: exitFail,
			stays: []string{
				"/.cache", "/.cache/toolcell", "/.cache/toolcell/images", "/.cache/toolcell/images/rootfs", "/.cache/toolcell/images/rootfs/a", "/.cache/toolcell/images/rootfs/a/file",
			},
		},
	}
}

// TestPurgeTakesOutAllEntries, also those that the user has made, and names those it cannot.
func TestPurgeTakesOutAllEntries(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	n.put(t, ".cursor/mcp.json", `{"mcpServers": {"jira": {"command": "jira-mcp"}, "toolcell": {"command": "`+bin+`", "args": ["serve"]},
		"second": {"command": "/gone/toolcell", "args": ["serve"]}, "uv": {"command": "uvx", "args": ["toolcell", "serve"]}}}`)
	n.put(t, ".claude.json", `{"projects": {"`+n.home+`": {"mcpServers": {"mine": {"command": "toolcell", "args": ["serve"]}}}}}`)
	n.must(t, 0, `left as it is: the entry "mine" in `+n.home+"/.claude.json", "purge", "--yes")
	if got := strings.Join(strings.Fields(read(t, n.home+"/.cursor/mcp.json")), ""); got != `{"mcpServers":{"jira":{"command":"jira-mcp"}}}` {
		t.Errorf("Cursor's file is %s", got)
	}
}

// TestPurgeNamesOtherStateFolders, which the entries in clients name.
func TestPurgeNamesOtherStateFolders(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	before := n.find(t)
	n.put(t, "elsewhere/state/trust.json", "{}")
	n.must(t, 0, "", "install", "cursor", "--env", "TOOLCELL_STATE_DIR="+n.home+"/elsewhere")
	n.must(t, 0, "toolcell purge --state-dir "+n.home+"/elsewhere", "purge", "--yes")
	n.must(t, 0, "removed: trust", "purge", "--yes", "--state-dir", n.home+"/elsewhere")
	n.wantFiles(t, before)
}

// TestPurgeInJSON has what went, and is all of standard output.
func TestPurgeInJSON(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	n.use(t)
	var rows []struct {
		DryRun   bool
		Clients  []struct{ Client, Status string }
		Disk     []diskUse
		OwnFiles []string
		Removed  []struct {
			Kind  string
			Freed int64
		}
		Freed         int64
		Left, Running []any
		Program       string
	}
	out, errs, code := n.run(t, n.env, "purge", "--yes", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	r := rows[0]
	if r.DryRun || len(r.Clients) != 1 || r.Clients[0].Client != "cursor" || r.Clients[0].Status != "restored" || r.Left == nil || r.Running == nil || r.Program != bin {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.OwnFiles, []string{"policy.toml", "servers/cursor.json"}) {
		t.Errorf("own files: %q", r.OwnFiles)
	}
	var freed int64
	for _, k := range r.Removed {
		freed += k.Freed
	}
	if freed != r.Freed || freed < 100_000 || len(r.Disk) < len(r.Removed) {
		t.Errorf("freed %d, and %+v of %+v", r.Freed, r.Removed, r.Disk)
	}
}

// TestDryRunForgetsNothing: the user took the entry out by hand, and may want the backup.
func TestDryRunForgetsNothing(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	n.must(t, 0, "", "install", "cursor")
	n.put(t, ".cursor/mcp.json", `{}`)
	before := n.find(t)
	n.must(t, 0, "nothing to do", "uninstall", "cursor", "--dry-run")
	n.must(t, 0, "", "purge", "--dry-run")
	n.wantFiles(t, before)
}

// TestPurgeOfAHostileLayout: nothing goes that is not toolcell's, and all that is.
func TestPurgeOfAHostileLayout(t *testing.T) {
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		for name, tt := range hostiles() {
			t.Run(name, func(t *testing.T) {
				n := newNewcomer(t, h)
				want := slices.Collect(maps.Keys(n.find(t)))
				tt.spoil(t, n)
				n.must(t, 0, "", "status")
				n.must(t, tt.code, strings.ReplaceAll(tt.says, "~", n.home), "purge", "--yes")
				want = append(want, tt.stays...)
				slices.Sort(want)
				after := n.find(t)
				if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, want) {
					t.Errorf("there are %q\nwant %q", got, want)
				}
				if after["/letter.txt"] != "mine" {
					t.Errorf("the letter is %q", after["/letter.txt"])
				}
			})
		}
	})
}

// TestPurgeDoesNotEnterMounts, such as a folder of the user that is mounted in the cache.
func TestPurgeDoesNotEnterMounts(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs unshare: apt-get install util-linux")
	}
	n.put(t, ".cache/toolcell/images/rootfs/a/x", "x")
	n.put(t, ".cache/toolcell/runner/runner-1/run.py", "x")
	n.put(t, "documents/book.txt", "mine")
	cmd := n.shell(t, n.env, `unshare -Urm sh -c 'mount --bind documents .cache/toolcell/images/rootfs/a && exec "$@"' sh "$@"`, "purge", "--yes")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare: ") || strings.Contains(string(out), "mount: ") {
		t.Skipf("no mounts here: %s", out)
	}
	if err == nil || !strings.Contains(string(out), n.home+"/.cache/toolcell/images/rootfs/a: another file system or folder is mounted there") {
		t.Errorf("%v: %s", err, out)
	}
	if text := read(t, filepath.Join(n.home, "documents/book.txt")); text != "mine" {
		t.Errorf("the book is %q", text)
	}
	if _, err := os.Lstat(filepath.Join(n.home, ".cache/toolcell/runner")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the rest is still there: %v", err)
	}
}

// TestPurgeWithSudoIsAboutRoot: the home folder that sudo has kept is another user's.
func TestPurgeWithSudoIsAboutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(h *host) bool { return h.name == "user" })
	if i < 0 {
		t.Skip("there is no ordinary user")
	}
	n := newNewcomer(t, all[i])
	n.put(t, ".config/toolcell/policy.toml", "")
	before := n.find(t)
	n.cred, n.env["SUDO_USER"] = nil, "ada"
	n.must(t, exitUsage, "without sudo", "purge", "--yes")
	n.wantFiles(t, before)
}

// TestPurgeKeepsMovedServers of a client whose file it cannot change, also where XDG_CONFIG_HOME
// says; and uninstall does not say that it has put back what is not there.
func TestPurgeKeepsMovedServers(t *testing.T) {
	n := newNewcomer(t, firstHost(t))
	n.env["XDG_CONFIG_HOME"] = n.home + "/cfg"
	before := n.find(t)
	n.must(t, 0, "moved jira", "install", "cursor", "--move-servers", "--yes")
	file := filepath.Join(n.home, ".cursor/mcp.json")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	n.must(t, exitFail, "is read-only", "purge", "--yes")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	n.must(t, 0, "put back: 1 server", "purge", "--yes")
	after := n.find(t)
	delete(after, "/cfg") // the user's own folder, which may have been there
	if !maps.Equal(after, before) {
		t.Errorf("there are %q\nwant %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}

	n.must(t, 0, "moved jira", "install", "cursor", "--move-servers", "--yes")
	if err := os.Remove(filepath.Join(n.home, "cfg/toolcell/servers/cursor.json")); err != nil {
		t.Fatal(err)
	}
	n.must(t, 0, "not put back: 1 server", "purge", "--yes")
	if text := read(t, file+".before-toolcell"); !strings.Contains(text, "jira-mcp") {
		t.Errorf("the backup has %q", text)
	}
}
