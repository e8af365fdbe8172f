// Command demo shows the main job of toolcell: it starts "toolcell serve", talks
// MCP to it as a client does, and has it run one Python script (plan.py) that
// finds and calls two other MCP servers, a calendar and a to-do list.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed plan.py
var script string

// patience covers the first run on a slow line, which pulls an image.
const patience = 10 * time.Minute

// paths are the files of the demo; its flags.
type paths struct{ toolcell, calendar, tasks, data string }

func main() {
	var p paths
	flag.StringVar(&p.toolcell, "toolcell", "bin/toolcell", "the toolcell binary")
	flag.StringVar(&p.calendar, "calendar", "bin/calendar", "the calendar server")
	flag.StringVar(&p.tasks, "tasks", "bin/tasks", "the tasks server")
	flag.StringVar(&p.data, "data", "examples/data", "folder of week.ics and todo.txt")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, p paths) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "toolcell-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := writeConfig(dir, p)
	if err != nil {
		return err
	}
	var times table

	say("1. Start \"toolcell serve\" with two MCP servers, calendar and tasks, in its config")
	begin := time.Now()
	session, err := start(ctx, p.toolcell, config)
	if err != nil {
		return fmt.Errorf("starting toolcell: %w", err)
	}
	defer func() { err = errors.Join(err, closed(session)) }()
	times.add("start the server, initialize", time.Since(begin))

	say("2. What a model sees of it: tools/list")
	begin = time.Now()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	times.add("tools/list", time.Since(begin))
	if err := showTools(tools); err != nil {
		return err
	}

	say("3. The script that the model would write")
	show(script)

	say("4. One call of run_python (the first one may pull an image)")
	begin = time.Now()
	answer, err := runPython(ctx, session)
	if err != nil {
		return err
	}
	times.add("run_python", time.Since(begin))

	say("5. The answer")
	show(times.takeStages(answer))
	say("6. The time each stage took")
	show(times.String())
	return nil
}

// writeConfig writes a servers.json in the form MCP clients use, with a copy
// of the to-do list, so that a script may change it.
func writeConfig(dir string, p paths) (string, error) {
	todo, err := os.ReadFile(filepath.Join(p.data, "todo.txt"))
	if err != nil {
		return "", err
	}
	todoCopy := filepath.Join(dir, "todo.txt")
	if err := os.WriteFile(todoCopy, todo, 0o600); err != nil {
		return "", err
	}
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	servers := map[string]server{}
	for name, s := range map[string]server{
		"calendar": {p.calendar, []string{filepath.Join(p.data, "week.ics")}},
		"tasks":    {p.tasks, []string{todoCopy}},
	} {
		if s.Command, err = existing(s.Command); err != nil {
			return "", err
		}
		if s.Args[0], err = existing(s.Args[0]); err != nil {
			return "", err
		}
		servers[name] = s
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "servers.json")
	return config, os.WriteFile(config, text, 0o600)
}

// existing returns path as an absolute one, if there is such a file.
func existing(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(abs)
	return abs, err
}

// start runs "toolcell serve" and initializes a session with it. Its log on
// stderr is passed through, without what the result says, too.
func start(ctx context.Context, toolcell, config string) (*mcp.ClientSession, error) {
	toolcell, err := existing(toolcell)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, toolcell, "serve")
	cmd.Env = append([]string{"TOOLCELL_LOG_LEVEL=ERROR"}, os.Environ()...) // the user's level wins
	cmd.Env = append(cmd.Env, "TOOLCELL_SERVERS_CONFIG="+config)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: showProgress,
	})
	return client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
}

// closed ends the session, and with it the server.
func closed(session *mcp.ClientSession) error {
	if err := session.Close(); err != nil {
		return fmt.Errorf("stopping toolcell: %w", err)
	}
	return nil
}

func showTools(list *mcp.ListToolsResult) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if len(list.Tools) != 1 || list.Tools[0].Name != "run_python" {
		return fmt.Errorf("expected the one tool run_python, got %s", text)
	}
	show(fmt.Sprintf("one tool, run_python: %d bytes, however many servers stand behind it", len(text)))
	return nil
}

// runPython calls the tool with the script and returns what it printed.
func runPython(ctx context.Context, session *mcp.ClientSession) (string, error) {
	call := &mcp.CallToolParams{
		Name: "run_python",
		Arguments: map[string]any{
			"code":    script,
			"servers": []string{"calendar", "tasks"},
			"timeout": 60,
		},
	}
	call.SetProgressToken("demo")
	res, err := session.CallTool(ctx, call)
	if err != nil {
		return "", fmt.Errorf("calling run_python: %w", err)
	}
	text := contentText(res)
	if res.IsError {
		return "", fmt.Errorf("run_python failed:\n%s", text)
	}
	// The text may be rendered in another output mode; the fields are the same.
	var fields struct {
		Stdout []string `json:"stdout"`
		Notes  []string `json:"notes"`
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(structured, &fields); err != nil {
		return "", fmt.Errorf("reading the result of run_python: %w", err)
	}
	for _, note := range fields.Notes {
		show("note: " + note)
	}
	if len(fields.Stdout) > 0 {
		text = strings.Join(fields.Stdout, "\n")
	}
	if !strings.Contains(text, "Plan for ") {
		return "", fmt.Errorf("the answer has no plan in it:\n%s", text)
	}
	return text, nil
}

func contentText(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
