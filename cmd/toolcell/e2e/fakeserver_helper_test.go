package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeServerEnv makes the test binary an upstream MCP server.
const fakeServerEnv = "TOOLCELL_TEST_SERVER"

// args are the arguments of the fake servers' tools.
type args struct {
	Path       string         `json:"path,omitempty"`
	Query      string         `json:"query,omitempty"`
	Repo       string         `json:"repo,omitempty"`
	Title      string         `json:"title,omitempty"`
	Body       string         `json:"body,omitempty"`
	DocumentID string         `json:"documentId,omitempty"`
	ObjectType string         `json:"objectType,omitempty"`
	RecordID   string         `json:"recordId,omitempty"`
	Data       map[string]any `json:"data,omitempty"`
	Project    string         `json:"project,omitempty"`
	Status     string         `json:"status,omitempty"`
	ID         string         `json:"id,omitempty"`
	Size       int            `json:"size,omitempty"`
}

// A fakeTool gives the value of a call, or its error.
type fakeTool func(a args) (any, error)

var (
	hanging, meeting atomic.Int64
	met              = make(chan struct{})
)

// fakeTools are the servers that the Python original's README talks of, and
// one that misbehaves in every way that a server of good will can.
var fakeTools = map[string]map[string]fakeTool{
	"filesystem": {
		"list_directory": func(args) (any, error) { return []string{"a.txt", "b.txt"}, nil },
		"read_file": func(a args) (any, error) {
			return map[string]string{"a.txt": "TODO: write", "b.txt": "done", "/tmp/test.txt": "hello"}[a.Path], nil
		},
	},
	"search": {"search": func(a args) (any, error) { return map[string]string{"title": "Found " + a.Query}, nil }},
	"github": {"create_issue": func(a args) (any, error) {
		if a.Title == "" {
			return nil, errors.New("title must not be empty")
		}
		return map[string]any{"number": 1, "title": a.Title, "repo": a.Repo}, nil
	}},
	"google_drive": {"get_document": func(args) (any, error) { return strings.Repeat("words ", 200), nil }},
	"salesforce":   {"update_record": func(a args) (any, error) { return map[string]any{"ok": true, "notes": a.Data["Notes"]}, nil }},
	"jira": {
		"search_issues": func(args) (any, error) {
			return []map[string]string{{"id": "API-1", "title": "Crash"}, {"id": "API-2", "title": "Idea"}}, nil
		},
		"get_issue": func(a args) (any, error) {
			return map[string]string{"id": a.ID, "description": map[string]string{"API-1": "A Bug here", "API-2": "a wish"}[a.ID]}, nil
		},
	},
	"odd": {
		// meet answers only when ten calls of it wait at once.
		"meet": func(args) (any, error) {
			if meeting.Add(1) == 10 {
				close(met)
			}
			<-met
			return 1, nil
		},
		"big":  func(a args) (any, error) { return strings.Repeat("0123456789abcde\n", a.Size/16), nil },
		"fail": func(args) (any, error) { return nil, errors.New("the disk is on fire") },
		"pid":  func(args) (any, error) { return os.Getpid(), nil },
		"hang": func(args) (any, error) { hanging.Add(1); time.Sleep(time.Hour); return nil, nil },
		// hanging says how many calls hang.
		"hanging": func(args) (any, error) { return hanging.Load(), nil },
		"die":     func(args) (any, error) { return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	},
	"schemas": {"small": func(args) (any, error) { return "ok", nil }},
}

// fakeServer serves one of them on standard input and output.
func fakeServer(name string) {
	switch name {
	case "fast":
		fastServer()
		return
	case "crowded":
		crowdedServer()
		return
	case "tracker":
		trackerServer()
		return
	case "changing":
		changingServer()
		return
	}
	if path, ok := strings.CutPrefix(name, legacyPrefix); ok {
		if err := legacyServer(path); err != nil {
			log.Print(err)
		}
		return
	}
	s := mcp.NewServer(&mcp.Implementation{Name: name}, nil)
	tools := fakeTools[name]
	if file, ok := strings.CutPrefix(name, replayPrefix); ok {
		replay(s, file)
	}
	switch name {
	case "spy":
		tools = spyTools
	case "boxed":
		tools = boxedTools
	}
	for tool, fn := range tools {
		mcp.AddTool(s, &mcp.Tool{Name: tool, Description: name + ": " + strings.ReplaceAll(tool, "_", " ")},
			func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, any, error) {
				v, err := fn(a)
				if err != nil {
					return nil, nil, err
				}
				text, ok := v.(string)
				if !ok {
					b, err := json.Marshal(v)
					if err != nil {
						return nil, nil, err
					}
					text = string(b)
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
			})
	}
	if name == "schemas" {
		for i := range 40 {
			// 40 tools of more than 10 KiB each.
			s.AddTool(&mcp.Tool{
				Name: "tool_" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Description: strings.Repeat("long ", 2100),
				InputSchema: json.RawMessage(`{"type":"object"}`),
			}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{}, nil
			})
		}
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		log.Print(err)
	}
}

// fakeBinary is this test binary, where every user can run it.
var fakeBinary = sync.OnceValues(func() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(shared, "fake-server")
	out, err := exec.Command("cp", exe, path).CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, os.Chmod(path, 0o755)
})

// fakeConfig writes a config with the fake servers and any other entries.
func fakeConfig(t *testing.T, more map[string]any) (path string) {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]any{}
	for name := range fakeTools {
		servers[name] = map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: name, "TOOLCELL_TEST_SLOW": os.Getenv("TOOLCELL_TEST_SLOW")}}
	}
	maps.Copy(servers, more)
	return writeConfig(t, map[string]any{"mcpServers": servers})
}

// writeConfig writes v as JSON where every user can read it.
func writeConfig(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(shared, "config-")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "servers.json")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, body, 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}
