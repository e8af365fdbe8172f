package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A clientReport is what install and uninstall print of one client with --json.
type clientReport struct {
	Client, File, Name, Status, Command, MovedTo, Diff, Error string
	Found, DryRun                                             bool
	PutBack                                                   int
	Moved, Stay                                               []struct{ Server, Dir, Reason string }
}

func (w *workshop) reports(t *testing.T, wantCode int, args ...string) map[string]clientReport {
	t.Helper()
	out, errs, code := w.run(t, w.env, append(args, "--json")...)
	var rows []clientReport
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != wantCode {
		t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, out, errs)
	}
	all := map[string]clientReport{}
	for _, r := range rows {
		all[r.Client] = r
	}
	return all
}

// TestInstallInSeveralClients: each that is named, or all that are found, with a
// row for each; one that cannot be changed does not keep it from the others.
func TestInstallInSeveralClients(t *testing.T) {
	w := newWorkshop(t)
	w.env["PATH"] = filepath.Dir(bin) // no programs of clients
	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"a": {"command": "x"}}}`)
	w.put(t, "home/.codex/config.toml", "")
	gemini := w.put(t, "home/.gemini/settings.json", `{"broken`)
	if _, errs, code := w.run(t, w.env, "install", "cursor", "codecks"); code != exitUsage || !strings.Contains(errs, "did you mean codex?") {
		t.Errorf("a wrong name: exit %d\n%s", code, errs)
	}
	if got := read(t, filepath.Join(w.home, ".cursor/mcp.json")); strings.Contains(got, "toolcell") {
		t.Errorf("it was installed beside a wrong name:\n%s", got)
	}

	if out, errs, code := w.run(t, w.env, "install"); code != exitUsage || !strings.Contains(out, "not installed") || !strings.Contains(errs, "toolcell install cursor codex, or toolcell install --all") {
		t.Errorf("without a client and a terminal: exit %d\n%s%s", code, out, errs)
	}
	if rows := w.reports(t, 0, "install"); len(rows) != 3 || !rows["cursor"].Found || rows["gemini"].Status != "unreadable" {
		t.Errorf("found are %+v", rows)
	}
	if rows := w.reports(t, 0, "install", "cursor", "--dry-run"); !rows["cursor"].DryRun || !strings.Contains(rows["cursor"].Diff, "+") {
		t.Errorf("a dry run: %+v", rows)
	}
	rows := w.reports(t, 1, "install", "--all")
	if len(rows) != 3 || rows["cursor"].Status != "added" || rows["codex"].Name != "toolcell" || rows["gemini"].Status != "failed" || rows["gemini"].Error == "" {
		t.Errorf("installed: %+v", rows)
	}
	if rows["codex"].Command != bin+" serve" || read(t, gemini) != `{"broken` {
		t.Errorf("codex starts %q", rows["codex"].Command)
	}
	w.must(t, "already there: \"toolcell\" in "+filepath.Join(w.home, ".codex"), "install", "cursor", "codex", "cursor")

	w.must(t, "type: toolcell install cursor --move-servers --dry-run\n", "install")
	w.must(t, "added to Zed", "install", "zed")
	w.must(t, "", "install", "cursor", "--project")
	out, errs, code := w.run(t, w.env, "uninstall", "--all", "--dry-run")
	if code != 0 || strings.Count(out, "--- ") != 3 || !strings.Contains(errs, filepath.Join(w.project, ".cursor/mcp.json")) {
		t.Errorf("a dry run: exit %d\n%s%s", code, out, errs)
	}
	rows = w.reports(t, 0, "uninstall", "--all")
	if len(rows) != 3 || rows["cursor"].Status != "restored" || rows["zed"].Status != "removed" || rows["codex"].Status != "restored" {
		t.Errorf("uninstalled: %+v", rows)
	}
	w.must(t, "no client has toolcell in its config", "uninstall", "--all")
	if rows := w.reports(t, 0, "uninstall", "cursor"); rows["cursor"].Status != "not installed" {
		t.Errorf("again: %+v", rows)
	}
}

// TestUninstallLeavesNothing: an empty file is empty again, and folders that
// install made are gone.
func TestUninstallLeavesNothing(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", "")
	w.must(t, file+".before-toolcell", "install", "cursor")
	if out, _, _ := w.run(t, w.env, "uninstall", "cursor"); !strings.Contains(out, "restored as it was before") {
		t.Error(out)
	}
	if got := read(t, file); got != "" {
		t.Errorf("the empty file is now %q", got)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}

	// The user has removed the backup and changed the file.
	w.must(t, "added", "install", "cursor")
	w.put(t, "home/.cursor/mcp.json", strings.Replace(read(t, file), "{", "{ // mine", 1))
	if err := os.Remove(file + ".before-toolcell"); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := w.run(t, w.env, "uninstall", "cursor"); !strings.Contains(out, "taken out") || strings.Contains(out, "before:") {
		t.Error(out)
	}

	w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"jira": {"command": "x"}}}`)
	for _, client := range []string{"zed", "windsurf", "cursor"} {
		w.must(t, "", "install", client, "--move-servers", "--yes")
	}
	w.must(t, "put back: 1 server", "uninstall", "--all")
	for _, folder := range []string{".config", ".codeium"} {
		if _, err := os.Stat(filepath.Join(w.home, folder)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", folder, err)
		}
	}
}

// TestReadOnlyFileNeedsForce: a user, or home-manager, means it.
func TestReadOnlyFileNeedsForce(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"a": {"command": "x"}}}`)
	before := read(t, file)
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	out, errs, code := w.run(t, w.env, "install", "cursor")
	if code != 1 || !strings.Contains(errs, "read-only") || !strings.Contains(errs, "--force") || read(t, file) != before {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	w.must(t, "added", "install", "cursor", "--force")
	if _, errs, code := w.run(t, w.env, "uninstall", "cursor"); code != 1 || !strings.Contains(errs, "--force") {
		t.Errorf("uninstall: exit %d\n%s", code, errs)
	}
	w.must(t, "restored", "uninstall", "cursor", "--force")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o400 || read(t, file) != before {
		t.Errorf("it is %v, %v", info, err)
	}
}

// TestMoveTakesLocalServersOfClaudeCode: they are counted, shown without their
// secrets, and used from their directory alone.
func TestMoveTakesLocalServersOfClaudeCode(t *testing.T) {
	w := newWorkshop(t)
	project, err := filepath.EvalSymlinks(w.project)
	if err != nil {
		t.Fatal(err)
	}
	file := w.put(t, "home/.claude.json", `{"numStartups": 1, "mcpServers": {}, "projects": {
  "`+project+`": {"mcpServers": {"jira": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "jira", "T": "s3cret-v4lue"}}}},
  "/else/where": {"mcpServers": {"off": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "search"}}}}
}}`)
	before, list := read(t, file), w.list(t)
	w.must(t, "its 2 other servers cost tokens", "install", "claude-code")
	w.must(t, "", "uninstall", "claude-code")
	out, _, _ := w.run(t, w.env, "install", "claude-code", "--move-servers", "--dry-run")
	for _, want := range []string{"jira (in " + project + ")", "off (in /else/where)", "saves ", `"T": "…"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "s3cret") || strings.Contains(out, "could not be asked") {
		t.Errorf("a secret is shown, or a server was not found:\n%s", out)
	}
	rows := w.reports(t, 0, "install", "claude-code", "--move-servers", "--yes")
	if got := rows["claude-code"]; len(got.Moved) != 2 || got.Moved[1].Dir != project && got.Moved[0].Dir != project {
		t.Errorf("moved: %+v", got)
	}
	if got := read(t, file); strings.Contains(got, "jira") || !strings.Contains(got, `"alwaysLoad": true`) {
		t.Errorf("left is\n%s", got)
	}
	list["toolcell"] = "skipped"
	if after := w.list(t); !maps.Equal(after, list) {
		t.Errorf("servers are %v\nand were %v", after, list)
	}
	w.must(t, "API-1", "exec", "-c", "print(await mcp_jira.search_issues())", "--server", "jira")
	if out, _, _ := w.run(t, w.env, "uninstall", "claude-code", "--dry-run"); strings.Contains(out, "s3cret") {
		t.Errorf("uninstall shows a secret:\n%s", out)
	}
	w.must(t, "put back: 2 servers", "uninstall", "claude-code")
	if got := read(t, file); got != before {
		t.Errorf("undo made it\n%s", got)
	}
}

// TestMakeUninstallNamesClients: they could not start what is removed.
func TestMakeUninstallNamesClients(t *testing.T) {
	w := newWorkshop(t)
	script, err := filepath.Abs("../../../.ci/uninstalling.sh")
	if err != nil {
		t.Fatal(err)
	}
	warning := func() string {
		out, err := w.shell(t, w.env, `exec "`+script+`" "$1"`).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return string(out)
	}
	if got := warning(); got != "" {
		t.Errorf("without clients it says %q", got)
	}
	w.must(t, "", "install", "cursor", "codex")
	if got := warning(); !strings.Contains(got, "still in the config of: cursor, codex.") {
		t.Errorf("it says %q", got)
	}
}

// TestInstallAsksWhichOnATerminal: several of the clients that are found, all of
// them, or none; a name that is not known is asked for again.
func TestInstallAsksWhichOnATerminal(t *testing.T) {
	w := newWorkshop(t)
	w.env["PATH"] = filepath.Dir(bin) // no programs of clients
	files := map[string]string{}
	for client, file := range map[string]string{"cursor": "home/.cursor/mcp.json", "gemini": "home/.gemini/settings.json", "kiro": "home/.kiro/settings/mcp.json"} {
		files[client] = w.put(t, file, "{}\n")
	}
	const question = "Put toolcell into which? Type names (cursor, gemini, kiro), or all; Enter for none:"
	p := w.onTerminal(t, "install")
	p.answers(question, "")
	if shown := p.end(); !strings.Contains(shown, "nothing was changed") || !strings.Contains(shown, "/home/.kiro/settings/mcp.json") {
		t.Errorf("none: %s", shown)
	}
	p = w.onTerminal(t, "install")
	p.answers(question, "cursor, kirro")
	p.answers("did you mean kiro?", "cursor, kiro")
	p.answers("May code read the files of the project that a client works in? They are at /project, read-only,\r\nwithout .env*, .git/config, *.pem, *.key, .npmrc, .netrc. [y/N]", "y")
	if shown := p.end(); !strings.Contains(shown, "added to Cursor") || !strings.Contains(shown, "added to Kiro") {
		t.Errorf("two: %s", shown)
	}
	for client, want := range map[string]bool{"cursor": true, "gemini": false, "kiro": true} {
		if got := strings.Contains(read(t, files[client]), "toolcell"); got != want {
			t.Errorf("%s has toolcell: %v, want %v", client, got, want)
		}
	}
	if got := read(t, filepath.Join(w.home, ".config/toolcell/config.toml")); got != "project = \"read\"\n" {
		t.Errorf("config.toml has %q", got)
	}
	p = w.onTerminal(t, "install")
	p.answers("Type names (gemini), or all", "all")
	if shown := p.end(); !strings.Contains(shown, "added to Gemini CLI") || strings.Contains(shown, "already there") || strings.Contains(shown, "May code read") {
		t.Errorf("all: %s", shown)
	}
	w.must(t, "installed", "install")
}
