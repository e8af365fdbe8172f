// Command tasks is an MCP server over stdio that keeps one todo.txt file: it
// lists, adds and completes tasks. See https://github.com/todotxt/todo.txt for
// the format.
//
// Usage: tasks FILE
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tasks FILE")
		os.Exit(2)
	}
	err := newServer(os.Args[1]).Run(context.Background(), &mcp.StdioTransport{})
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

type listTasksIn struct {
	Project  string `json:"project,omitempty" jsonschema:"only tasks of this project, with or without its +"`
	Context  string `json:"context,omitempty" jsonschema:"only tasks of this context, with or without its @"`
	OpenOnly bool   `json:"open_only,omitempty" jsonschema:"leave out completed tasks"`
}

type listTasksOut struct {
	Tasks []task `json:"tasks"`
}

type addTaskIn struct {
	Text string `json:"text" jsonschema:"the task in todo.txt form, such as: (A) Call Ada +sales @phone due:2026-11-24 min:15"`
}

type completeTaskIn struct {
	Line int `json:"line" jsonschema:"line number of the task, from list_tasks"`
}

// newServer returns the server for the todo.txt file at path, which is created
// with the first task.
func newServer(path string) *mcp.Server {
	f := &file{path: path}
	s := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "list_tasks",
		Description: "List the tasks of my to-do list, with priority, due date, estimate in minutes, projects and contexts.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in listTasksIn) (*mcp.CallToolResult, listTasksOut, error) {
		tasks, err := f.list(in)
		return nil, listTasksOut{tasks}, err
	})
	additive := false
	mcp.AddTool(s, &mcp.Tool{
		Name:        "add_task",
		Description: "Add a task to my to-do list.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &additive},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in addTaskIn) (*mcp.CallToolResult, task, error) {
		t, err := f.add(in.Text)
		return nil, t, err
	})
	mcp.AddTool(s, &mcp.Tool{
		Name:        "complete_task",
		Description: "Mark a task of my to-do list as done.",
	}, func(_ context.Context, _ *mcp.CallToolRequest, in completeTaskIn) (*mcp.CallToolResult, task, error) {
		t, err := f.complete(in.Line)
		return nil, t, err
	})
	return s
}
