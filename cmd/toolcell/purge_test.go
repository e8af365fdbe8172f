package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/host"
)

// newPurging returns options whose folders, home and streams are the test's.
func newPurging(t *testing.T) (o purgeOptions, home string, printed func() string) {
	t.Helper()
	home = t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SUDO_USER", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	options, printed := newOptions(t)
	options.Settings.StateDir = filepath.Dir(options.Settings.Dirs.Run)
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	options.In = in
	change := installer.Options{
		Streams: options.Streams, Settings: options.Settings, Discovery: clientconfig.Options{Home: home, Dir: home},
		Values: clientconfig.NewValues(options.Settings.Dirs.State),
	}
	options.Command = "purge"
	return purgeOptions{Options: options, change: change}, home, printed
}

// TestPurgeWithoutAnAnswerChangesNothing.
func TestPurgeWithoutAnAnswerChangesNothing(t *testing.T) {
	o, _, printed := newPurging(t)
	saved := putFile(t, filepath.Join(o.Settings.Dirs.Tools(), "global/a.py"), "def a(): pass\n", 0o644)
	err := purge(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "purge needs --yes") || console.ExitUsage != exitCode(err) {
		t.Errorf("got %v", err)
	}
	o.DryRun = true
	if err := purge(t.Context(), o); err != nil {
		t.Error(err)
	}
	text := printed()
	for _, want := range []string{"saved tools", "This cannot be undone. You lose 1 saved tool.", "nothing was removed: this was a dry run"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(saved); err != nil {
		t.Error(err)
	}
	o.DryRun, o.Yes = false, true
	if err := purge(t.Context(), o); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(o.Settings.Dirs.State)); !os.IsNotExist(err) {
		t.Errorf("the state folder is still there: %v", err)
	}
	text = printed()
	total := regexp.MustCompile(`(?m)^total +(.+)$`).FindAllStringSubmatch(text, -1)
	freed := regexp.MustCompile(`(?m)^freed (.+)$`).FindStringSubmatch(text)
	if len(total) == 0 || freed == nil || total[len(total)-1][1] != freed[1] && !sharedIDs() {
		t.Errorf("it shows a total of %q and has freed %q:\n%s", total, freed, text)
	}
}

// TestPurgeSaysWhatItDoesNotFree: data that hard links elsewhere keep.
func TestPurgeSaysWhatItDoesNotFree(t *testing.T) {
	o, home, printed := newPurging(t)
	saved := putFile(t, filepath.Join(o.Settings.Dirs.Tools(), "global/a.py"), "def a(): pass\n", 0o644)
	if err := os.Link(saved, home+"/backup.py"); err != nil {
		t.Fatal(err)
	}
	o.Yes = true
	if err := purge(t.Context(), o); err != nil {
		t.Error(err)
	}
	if text := printed(); !strings.Contains(text, "4 KiB of it will not be freed: files elsewhere are hard links to the same data") || regexp.MustCompile(`(?m)^freed .*, left `).MatchString(text) && !sharedIDs() {
		t.Error(text)
	}
}

// sharedIDs reports whether the folder of user IDs, which all processes of a user share, is still
// there: then another test has a sandbox now, and purge has left it.
func sharedIDs() bool {
	return slices.ContainsFunc(host.IDFolders(os.Geteuid()), func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	})
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*console.ExitError](err); ok {
		return exit.Code
	}
	return -1
}

// TestProjectsFilesAreFound by their clients' paths; others are named.
func TestProjectsFilesAreFound(t *testing.T) {
	o, home, _ := newPurging(t)
	project := filepath.Join(home, "work/site")
	files := map[string]string{
		project + "/.cursor/mcp.json": "cursor", project + "/.kiro/settings/mcp.json": "kiro", project + "/.mcp.json": "claude-code", project + "/odd/place.json": "",
	}
	err := edit.Journal(o.Settings.Dirs.State).Change(func(all map[string]edit.Record) {
		for file := range files {
			putFile(t, file, `{"mcpServers": {}}`, 0o644)
			all[file] = edit.Record{Name: "toolcell", Backup: putFile(t, file+".before-toolcell", "{}", 0o644)}
		}
		// A journal that was tampered with does not lead to other files.
		all[home+"/.cursor/mcp.json"] = edit.Record{Name: "toolcell", Backup: putFile(t, home+"/letter.txt", "mine", 0o644)}
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := findClientFiles(o.change.Discovery, o.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.files {
		if f.project == "" && f.in.File == home+"/.cursor/mcp.json" {
			continue
		}
		if f.project != project || files[f.in.File] != f.in.Client {
			t.Errorf("%+v", f)
		}
	}
	odd := project + "/odd/place.json"
	if len(found.files) != 4 || !slices.Equal(found.unknown, []string{odd}) || len(found.backups) != 3 || slices.Contains(found.backups, odd+".before-toolcell") {
		t.Errorf("%+v", found)
	}
}

// TestUnreadableFilesAreNamed: toolcell may be in them, and stays there.
func TestUnreadableFilesAreNamed(t *testing.T) {
	o, home, printed := newPurging(t)
	file := putFile(t, home+"/.qwen/settings.json", "{broken", 0o644)
	o.Yes = true
	if err := purge(t.Context(), o); err != nil {
		t.Error(err)
	}
	if want := "left as it is: toolcell may be in " + file + ", which cannot be read: is not JSON"; !strings.Contains(printed(), want) {
		t.Errorf("it does not say %q:\n%s", want, printed())
	}
}

// TestStateFoldersOfEntriesAreNamed, also that of an entry in a project's file, and by the old variable.
func TestStateFoldersOfEntriesAreNamed(t *testing.T) {
	o, home, _ := newPurging(t)
	entry := func(variable, dir string) string {
		putFile(t, dir+"/state/trust.json", "{}", 0o644)
		return `{"mcpServers": {"toolcell": {"command": "toolcell", "env": {"` + variable + `": "` + dir + `"}}}}`
	}
	putFile(t, home+"/.cursor/mcp.json", entry("MCP_BRIDGE_STATE_DIR", home+"/one"), 0o644)
	project := putFile(t, home+"/site/.mcp.json", entry("TOOLCELL_STATE_DIR", home+"/two"), 0o644)
	err := edit.Journal(o.Settings.Dirs.State).Change(func(all map[string]edit.Record) { all[project] = edit.Record{Name: "toolcell"} })
	if err != nil {
		t.Fatal(err)
	}
	p := &purging{purgeOptions: o}
	if p.clients, err = findClientFiles(o.change.Discovery, o.Settings); err != nil {
		t.Fatal(err)
	}
	left := strings.Join(p.otherFolders(), "\n")
	for _, want := range []string{"the state folder that toolcell has in Cursor; to remove what is in it: toolcell purge --state-dir " + home + "/one", "purge --state-dir " + home + "/two"} {
		if !strings.Contains(left, want) {
			t.Errorf("it does not say %q:\n%s", want, left)
		}
	}
}

// TestWhatUndoNeedsIsKept if a client's file could not be changed, wherever its servers are.
func TestWhatUndoNeedsIsKept(t *testing.T) {
	o, home, _ := newPurging(t)
	dir, moved := o.Settings.Dirs.State, home+"/cfg/toolcell/servers/cursor.json"
	err := edit.Journal(dir).Change(func(all map[string]edit.Record) { all[home+"/.cursor/mcp.json"] = edit.Record{MovedTo: moved} })
	if err != nil {
		t.Fatal(err)
	}
	needed, err := (&purging{purgeOptions: o}).neededToUndo()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		dir + "/installs.json": true, dir + "/installs.json.lock": true, dir + "/values.json": true, dir + "/trust.json": true,
		moved: true, home + "/cfg/toolcell/servers": true, home + "/cfg/toolcell/policy.toml": false, dir + "/tools": false, dir + "/answers.jsonl": false,
	} {
		if got := isNeeded(path, needed); got != want {
			t.Errorf("%s is kept: %t", path, got)
		}
	}
}

// TestRefusalNamesAllProcesses, and how to end them.
func TestRefusalNamesAllProcesses(t *testing.T) {
	o, _, _ := newPurging(t)
	p := &purging{purgeOptions: o, running: []runningProcess{{PID: 11, Command: "serve", Client: "claude"}, {PID: 12, Command: "exec"}, {}}}
	const want = "nothing was removed: toolcell serve (PID 11, started by claude), toolcell exec (PID 12), " +
		"a process that cannot be seen from here are still running; quit the client, or end it with: kill 11 12"
	if err := p.refuse(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestUsersOfTheCacheAreFound: a pull has no folder of its own.
func TestUsersOfTheCacheAreFound(t *testing.T) {
	o, _, _ := newPurging(t)
	store, err := openStore(o.Settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if users := cacheUsers(o.Settings.Dirs); len(users) > 0 {
		t.Errorf("of an open store: %+v", users)
	}
	lock := filepath.Join(o.Settings.Dirs.Cache, "images/locks/pulls")
	unlock, err := state.Lock(t.Context(), lock, state.Shared)
	if err != nil {
		t.Fatal(err)
	}
	users := cacheUsers(o.Settings.Dirs)
	unlock()
	if len(users) != 1 || users[0].PID != os.Getpid() || users[0].Folder != lock {
		t.Errorf("during a pull: %+v", users)
	}
}

// TestCacheOfAProcess is where its environment and flags say.
func TestCacheOfAProcess(t *testing.T) {
	if got := cacheOf(os.Getpid(), []string{"toolcell", "images", "refresh", "--state-dir=/srv/x"}); got != "/srv/x/cache" {
		t.Errorf("by its flag: %q", got)
	}
	if got := cacheOf(0, nil); got != "" {
		t.Errorf("of no process: %q", got)
	}
	if got := cacheOf(os.Getpid(), []string{"toolcell", "serve", "--state-dir", "x"}); !strings.HasSuffix(got, "/cmd/toolcell/x/cache") {
		t.Errorf("by a relative path: %q", got)
	}
	if all := processesAt(settings.Dirs{Cache: "/nowhere/cache"}); len(all) > 0 {
		t.Errorf("for a folder that none uses: %+v", all)
	}
}

// TestLostNamesWhatOnlyTheUserCanMakeAgain.
func TestLostNamesWhatOnlyTheUserCanMakeAgain(t *testing.T) {
	p := &purging{disk: &footprint.Found{Uses: []footprint.Use{
		{Kind: footprint.Images, Count: 3, Files: 3},
		{Kind: footprint.Tools, Count: 2, Files: 4},
		{Kind: footprint.Files, Count: 1, Files: 2},
		{Kind: footprint.Logins, Count: 1, Files: 1},
		{Kind: footprint.Decisions, Count: 1, Files: 1},
		{Kind: footprint.OwnFiles, Count: 2, Files: 2, Folders: []string{"/c"}},
	}, Names: []string{"policy.toml", "servers/x.json"}}}
	const want = "2 saved tools, the files of 1 run, 1 login, what you trusted, answered and set for servers, your own files in /c (policy.toml, servers/x.json)"
	if got := p.lost(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (&purging{disk: &footprint.Found{}}).lost(); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}

// TestHomesOfServersAreMeasuredAndRemoved, though they belong to IDs that this user cannot look into.
func TestHomesOfServersAreMeasuredAndRemoved(t *testing.T) {
	o, _, printed := newPurging(t)
	h, err := host.Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	if ostest.IsUser() && h.ServerUIDs.Size == 0 {
		t.Fatalf("user %d has no IDs for servers", h.EUID)
	}
	dir, one := o.Settings.Dirs.Homes(), h
	one.UIDs.User = -1
	home, err := homes.Open(dir, one).Ensure(t.Context(), "my server")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(home.Dir+"/sub", 0o700), os.WriteFile(home.Dir+"/sub/file", make([]byte, 1<<20), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := homes.Open(dir, h).Ensure(t.Context(), "my server"); err != nil {
		t.Fatal(err)
	}
	row, err := newStatus(t.Context(), o.Options)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(row.Disk, func(u footprint.Use) bool { return u.Kind == footprint.Homes })
	if i < 0 || row.Disk[i].Count != 1 || row.Disk[i].Bytes < 1<<20 {
		t.Errorf("on the disk is %+v", row.Disk)
	}
	o.Yes = true
	if err := purge(t.Context(), o); err != nil {
		t.Errorf("purge: %v", err)
	}
	for _, want := range []string{"the home folder of 1 server", "removed: homes of servers, 1"} {
		if text := printed(); !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if _, err := os.Lstat(o.Settings.Dirs.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state folder is there: %v", err)
	}
	if h.EUID == 0 && host.HasAllIDs() {
		ostest.AgainAsUser(t)
	}
}
