package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServeFollowsTheConfigFiles changes the files under a served binary: a new
// server can be called at the next run, and one that did not change keeps its
// process.
func TestServeFollowsTheConfigFiles(t *testing.T) {
	w := newWorkshop(t)
	entry := func(fake, more string) string {
		return `{"mcpServers": {"odd": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "odd"}}` + strings.ReplaceAll(more, "NAME", fake) + `}}`
	}
	const another = `, "NAME": {"command": "FAKE_SERVER", "env": {"FAKE_ENV": "NAME"}}`
	w.put(t, "home/.claude.json", entry("", ""))
	file := w.putProject(t, projectFile)
	c := w.serve(t, w.env)
	pid := c.python(t, "print(await mcp_odd.pid())", "odd").text

	w.put(t, "home/.claude.json", entry("github", another))
	c.python(t, "print((await mcp_github.create_issue(title='a')).title, await mcp_odd.pid())", "github", "odd").want(t, "a "+pid)
	if r := c.python(t, "print(1)", "jira"); !r.isError || !strings.Contains(r.text, "toolcell servers trust "+file) {
		t.Errorf("an untrusted server: %s", r.text)
	}
	w.must(t, "trusted", "servers", "trust", file)
	c.python(t, "print((await mcp_jira.search_issues())[0].id)", "jira").want(t, "API-1")

	w.putProject(t, projectFile+" ")
	if r := c.python(t, "print(1)", "jira"); !r.isError || !strings.Contains(r.text, "has changed since it was trusted") {
		t.Errorf("after a change of its file: %s", r.text)
	}
	// Without a run: the client only lists.
	if err := os.WriteFile(filepath.Join(w.home, ".claude.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ListTools(t.Context(), &mcp.ListToolsParams{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the server that is gone from the file", func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(pid))
		return err != nil
	})
}
