package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect returns a client of the server for the calendar at path.
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

func call(t *testing.T, c *mcp.ClientSession, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

func TestToolsAnswerAboutTheSampleWeek(t *testing.T) {
	c := connect(t, filepath.Join("..", "data", "week.ics"))

	res := call(t, c, "free_slots", map[string]any{"date": "2026-11-24", "min_minutes": 30})
	var free freeSlotsOut
	if err := json.Unmarshal([]byte(text(res)), &free); err != nil || res.IsError {
		t.Fatalf("free_slots: %v, %s", err, text(res))
	}
	want := []slotOut{
		{"2026-11-24T09:00:00+01:00", "2026-11-24T09:30:00+01:00", 30},
		{"2026-11-24T09:45:00+01:00", "2026-11-24T10:30:00+01:00", 45},
		{"2026-11-24T11:30:00+01:00", "2026-11-24T12:30:00+01:00", 60},
		{"2026-11-24T13:30:00+01:00", "2026-11-24T16:00:00+01:00", 150},
	}
	if !reflect.DeepEqual(free.Slots, want) {
		t.Errorf("slots = %+v, want %+v", free.Slots, want)
	}

	res = call(t, c, "list_events", map[string]any{"from": "2026-11-23", "to": "2026-11-29"})
	var listed listEventsOut
	if err := json.Unmarshal([]byte(text(res)), &listed); err != nil || res.IsError {
		t.Fatalf("list_events: %v, %s", err, text(res))
	}
	var got []string
	for _, e := range listed.Events {
		got = append(got, strings.TrimSuffix(e.Start, ":00+01:00")+" "+e.Title)
	}
	wantEvents := []string{
		"2026-11-23T09:30 Stand-up",
		"2026-11-23T14:00 Sprint planning",
		"2026-11-24 Birthday of Jonas",
		"2026-11-24T09:30 Stand-up",
		"2026-11-24T10:30 Design review: Atlas, second round",
		"2026-11-24T12:30 Lunch with Maya",
		"2026-11-24T16:00 Dentist",
		"2026-11-25T09:30 Stand-up",
		"2026-11-25T16:00 Interview with the candidate in Boston who applied for the position of site reliability engineer",
		"2026-11-26T09:30 Stand-up",
		"2026-11-27 Team offsite in Hamburg",
	}
	if !reflect.DeepEqual(got, wantEvents) {
		t.Errorf("events = %q, want %q", got, wantEvents)
	}
	if len(listed.Warnings) > 0 {
		t.Errorf("warnings = %q, want none", listed.Warnings)
	}
}

func TestWrongArgumentsAreToolErrors(t *testing.T) {
	c := connect(t, filepath.Join("..", "data", "week.ics"))
	for _, tc := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list_events", map[string]any{"from": "tomorrow"}, "is not a day"},
		{"list_events", map[string]any{"from": "2026-11-24", "to": "2026-11-23"}, "is not a range"},
		{"list_events", map[string]any{"from": "2026-11-24", "to": "2036-11-23"}, "is not a range"},
		{"list_events", map[string]any{}, "from"},
		{"free_slots", map[string]any{"date": "2026-02-30"}, "is not a day"},
		{"free_slots", map[string]any{"date": "2026-11-24", "day_start": "9"}, "is not a time of day"},
		{"free_slots", map[string]any{"date": "2026-11-24", "day_start": "18:00"}, "is not before"},
		{"free_slots", map[string]any{"date": "2026-11-24", "min_minutes": -5}, "min_minutes"},
	} {
		if res := call(t, c, tc.tool, tc.args); !res.IsError || !strings.Contains(text(res), tc.want) {
			t.Errorf("%s %v = %s, want a tool error with %q", tc.tool, tc.args, text(res), tc.want)
		}
	}
	c = connect(t, filepath.Join(t.TempDir(), "missing.ics"))
	if res := call(t, c, "free_slots", map[string]any{"date": "2026-11-24"}); !res.IsError {
		t.Errorf("a missing file gave %s, want a tool error", text(res))
	}
}

func TestToolsDeclareTheirOutput(t *testing.T) {
	tools, err := connect(t, "").ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.OutputSchema == nil || tool.Description == "" {
			t.Errorf("%s has no output schema or no description", tool.Name)
		}
	}
}
