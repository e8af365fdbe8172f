package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect returns a client of the server for the file at path.
func connect(t *testing.T, path string) *mcp.ClientSession {
	t.Helper()
	clientEnd, serverEnd := mcp.NewInMemoryTransports()
	server, err := newServer(path).Connect(t.Context(), serverEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Wait() })
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), clientEnd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// call returns the text of a tool's answer and whether it is an error.
func call(t *testing.T, c *mcp.ClientSession, tool string, args map[string]any) (string, bool) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

func titles(t *testing.T, c *mcp.ClientSession, args map[string]any) []string {
	t.Helper()
	text, isError := call(t, c, "list_tasks", args)
	var out listTasksOut
	if err := json.Unmarshal([]byte(text), &out); err != nil || isError {
		t.Fatalf("list_tasks %v: %v, %s", args, err, text)
	}
	names := []string{}
	for _, task := range out.Tasks {
		names = append(names, task.Title)
	}
	return names
}

func TestListFiltersTasks(t *testing.T) {
	c := connect(t, filepath.Join("..", "data", "todo.txt"))
	for _, tc := range []struct {
		args map[string]any
		want []string
	}{
		{map[string]any{"project": "atlas"}, []string{"Prepare the slides for the design review", "Read Jonas's pull request", "Renew the domain"}},
		{map[string]any{"project": "+Atlas", "open_only": true}, []string{"Prepare the slides for the design review", "Read Jonas's pull request"}},
		{map[string]any{"context": "@phone"}, []string{"Book the train to Hamburg", "Call the landlord about the heating"}},
		{map[string]any{"project": "none"}, []string{}},
	} {
		if got := titles(t, c, tc.args); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("list_tasks %v = %q, want %q", tc.args, got, tc.want)
		}
	}
}

func TestAddAndCompleteKeepTheRestOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "todo.txt")
	before := "(B) 2026-01-02 one  with  spaces +p\r\n\nx 2026-01-03 2026-01-01 two\n(A) three" // no newline at its end
	if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	c := connect(t, path)
	for _, tc := range []struct {
		tool string
		args map[string]any
	}{
		{"add_task", map[string]any{"text": "(C) four due:2026-11-24"}},
		{"add_task", map[string]any{"text": "2026-02-01 five"}},
		{"complete_task", map[string]any{"line": 4}},
		{"complete_task", map[string]any{"line": 1}},
	} {
		if text, isError := call(t, c, tc.tool, tc.args); isError {
			t.Fatalf("%s %v: %s", tc.tool, tc.args, text)
		}
	}
	today := time.Now().Format(time.DateOnly)
	want := "x " + today + " 2026-01-02 one  with  spaces +p pri:B\n\nx 2026-01-03 2026-01-01 two\nx " + today +
		" three pri:A\n(C) " + today + " four due:2026-11-24\n2026-02-01 five\n"
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("file = %q, %v, want %q", got, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode = %v, %v, want 0640", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files in the folder, want only todo.txt", len(entries))
	}
}

func TestWrongArgumentsAreToolErrorsAndChangeNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "todo.txt")
	const before = "one\n\nx two\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	c := connect(t, path)
	for _, tc := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"add_task", map[string]any{"text": "  "}, "one line"},
		{"add_task", map[string]any{"text": "a\nx b"}, "one line"},
		{"add_task", map[string]any{"text": strings.Repeat("a", maxTask+1)}, "one line"},
		{"complete_task", map[string]any{"line": 0}, "no task on line 0"},
		{"complete_task", map[string]any{"line": 2}, "no task on line 2"},
		{"complete_task", map[string]any{"line": 3}, "already done"},
		{"complete_task", map[string]any{"line": 4}, "no task on line 4"},
	} {
		if text, isError := call(t, c, tc.tool, tc.args); !isError || !strings.Contains(text, tc.want) {
			t.Errorf("%s %v = %s, want a tool error with %q", tc.tool, tc.args, text, tc.want)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != before {
		t.Errorf("file = %q, want it unchanged", got)
	}
}

func TestFileIsCreatedWithTheFirstTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "todo.txt")
	c := connect(t, path)
	if got := titles(t, c, nil); len(got) != 0 {
		t.Errorf("tasks = %q, want none", got)
	}
	call(t, c, "add_task", map[string]any{"text": "one"})
	if got := titles(t, c, nil); !reflect.DeepEqual(got, []string{"one"}) {
		t.Errorf("tasks = %q, want one", got)
	}
}

func TestLinkToTheFileStaysALink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.txt")
	if err := os.WriteFile(filepath.Join(dir, "todo.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("todo.txt", link); err != nil {
		t.Fatal(err)
	}
	if _, err := (&file{link}).complete(1); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("link is now %v, %v", info.Mode(), err)
	}
}

func TestNoTaskIsLostWhenManyAreAddedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "todo.txt")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := (&file{path}).add(fmt.Sprint("task ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if tasks, err := (&file{path}).list(listTasksIn{}); err != nil || len(tasks) != 40 {
		t.Errorf("%d tasks, %v, want 40", len(tasks), err)
	}
}
