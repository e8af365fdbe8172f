package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServersAreKnownToTheNextProcess(t *testing.T) {
	h := firstHost(t)
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	starts := filepath.Join(h.home, "starts")
	server := map[string]any{
		"command": "sh", "args": []string{"-c", `echo started >>"$STARTS"; exec "$FAKE"`},
		"env": map[string]string{fakeServerEnv: "github", "STARTS": starts, "FAKE": exe},
	}
	e := env{"TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": map[string]any{"github": server}})}
	started := func() int {
		data, _ := os.ReadFile(starts)
		return strings.Count(string(data), "started")
	}
	for i := range 2 {
		out, errs, code := h.run(t, e, "servers", "search", "create", "issue", "--json")
		if code != 0 || !strings.Contains(out, "create_issue") || !strings.Contains(out, `"score":`) || started() != 1 {
			t.Fatalf("search %d: exit %d, %d starts\n%s%s", i+1, code, started(), out, errs)
		}
	}
	out, errs, code := h.run(t, e, "servers", "list", "--json")
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), ""), `"tools":1`) {
		t.Errorf("list: exit %d\n%s%s", code, out, errs)
	}
	h.serve(t, e).python(t, `
from mcp import runtime
print((await runtime.search_tool_docs("issue"))[0].tool, (await runtime.query_tool_docs("github", detail="full"))[0].inputSchema["type"])
print([0 < (await runtime.search_tool_docs("create issue", detail=d))[0].score <= 1 for d in ("summary", "schema", "full")])
print([runtime.search_tool_docs_sync(q) for q in ("pizza", "book a flight to Paris", "how are you")])
`).want(t, "create_issue object\n[True, True, True]\n[[], [], []]")
	if started() != 1 {
		t.Errorf("%d starts, want the first alone", started())
	}
	out, errs, code = h.run(t, e, "servers", "tools", "github")
	if code != 0 || started() != 2 {
		t.Errorf("tools asks anew: exit %d, %d starts\n%s%s", code, started(), out, errs)
	}
	files, _ := filepath.Glob(filepath.Join(h.home, "state", "cache", "servers", "*.tools"))
	if len(files) == 0 {
		t.Error("nothing is kept below the cache folder")
	}
	for _, file := range files {
		if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, st.Mode(), err)
		}
	}
}
