// Command calendar is an MCP server over stdio that answers questions about
// one iCalendar file: what is on, and when there is time.
//
// Usage: calendar FILE.ics
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // so that TZID works on hosts without a zone database

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: calendar FILE.ics")
		os.Exit(2)
	}
	err := newServer(os.Args[1]).Run(context.Background(), &mcp.StdioTransport{})
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "calendar:", err)
		os.Exit(1)
	}
}

// newServer returns the server for the calendar at path. The file is read at
// every call, so that edits show at once.
func newServer(path string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "calendar", Version: "1.0.0"}, nil)
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{
		Name:        "list_events",
		Description: "List the events and appointments of my calendar between two days.",
		Annotations: readOnly,
	}, func(_ context.Context, _ *mcp.CallToolRequest, in listEventsIn) (*mcp.CallToolResult, listEventsOut, error) {
		out, err := listEvents(path, in)
		return nil, out, err
	})
	mcp.AddTool(s, &mcp.Tool{
		Name:        "free_slots",
		Description: "Find when I am free on a day: the gaps between the events of my calendar.",
		Annotations: readOnly,
	}, func(_ context.Context, _ *mcp.CallToolRequest, in freeSlotsIn) (*mcp.CallToolResult, freeSlotsOut, error) {
		out, err := freeSlots(path, in)
		return nil, out, err
	})
	return s
}
