package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// TestToolsThatMakeNoSenseAreLeftOut, each with its reason, and those beside it stay.
func TestToolsThatMakeNoSenseAreLeftOut(t *testing.T) {
	for raw, want := range map[string]string{
		`"text"`:                           "its definition must be an object, not text",
		`{"name":7}`:                       "its name must be text, not a number",
		`{"title":"T"}`:                    "its name must be text, not nothing",
		`{"name":" "}`:                     "its name is empty",
		`{"name":"a\u0007b"}`:              "its name contains control characters",
		`{"name":"a\u200bb"}`:              "its name contains invisible characters",
		`{"name":"first","title":"other"}`: "the server has another of this name",
	} {
		d := definitionsOf(t, `{"name":"first","title":"one"}`, raw, `{"name":"last"}`)
		if len(d.tools) != 2 || d.tools[0].Title != "one" || d.tools[1].Name != "last" {
			t.Errorf("%s: listed: %+v", raw, d.tools)
		}
		if len(d.left) != 1 || d.left[0].Reason != want {
			t.Errorf("%s: left out: %+v, want %s", raw, d.left, want)
		}
	}
}

// TestToolOfTooManyMembersIsNamed, and why it cannot be used.
func TestToolOfTooManyMembersIsNamed(t *testing.T) {
	d := definitionsOf(t, `{"name":"huge"`+strings.Repeat(`,"":0`, 200_000)+`}`)
	if len(d.left) != 1 || d.left[0] != (leftOut{"huge", "its definition has more than 200000 members"}) {
		t.Errorf("left out: %+v", d.left)
	}
}

func TestCallOfAToolWithAnOddNameIsToldWhy(t *testing.T) {
	l := newList(definitionsOf(t, `{"name":"a\u0007b"}`, `{"name":"other"}`), toolFilter{})
	mcptest.WantError(t, l.Missing("s", "a\ab"), `tool "ab" of server "s" cannot be used: its name contains control`)
}

func TestLogNamesToolsThatAreLeftOut(t *testing.T) {
	var log bytes.Buffer
	b := NewBuilder(slog.New(slog.NewTextHandler(&log, nil)))
	add(t, b, []json.RawMessage{
		json.RawMessage(`{"name":"only-task","execution":{"taskSupport":"required"}}`),
		json.RawMessage(`{"name":"a\u200bb"}`), json.RawMessage(`{"name":"good"}`),
	})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("logged: %q", lines)
	}
	for i, want := range []string{
		`level=INFO msg="leaving out a tool" tool=only-task`,
		`level=WARN msg="leaving out a tool" tool="a`,
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("logged: %s, want %s", lines[i], want)
		}
	}
}

func TestSchemasThatAreNoObjectsAreNotShown(t *testing.T) {
	for name, members := range map[string]string{
		"none": "", "null": `,"inputSchema":null,"outputSchema":null`, "lists": `,"inputSchema":[1],"outputSchema":[1]`,
		"texts": `,"inputSchema":"x","outputSchema":"x","annotations":"x"`,
	} {
		tool := definitionsOf(t, `{"name":"a"`+members+`}`).tools[0]
		if string(tool.InputSchema) != `{"type":"object"}` || tool.OutputSchema != nil || tool.Annotations != nil {
			t.Errorf("%s: input %s, output %s, annotations %s", name, tool.InputSchema, tool.OutputSchema, tool.Annotations)
		}
	}
}

// TestPinsCompareWhatTheServerSent, when it lists its tools and when they come from disk, shown or not.
func TestPinsCompareWhatTheServerSent(t *testing.T) {
	tools := []string{
		`{"name":"a","description":"hidden \u200b","annotations":{"readOnlyHint":true}}`,
		`{"name":"b","annotations":{"destructiveHint":true}}`,
	}
	dir, s := t.TempDir(), config.Server{Name: "s", Command: "x", DenyTools: []string{"b"}}
	d := definitionsOf(t, tools...)
	recordIn(dir, s).Put(d, 0)
	kept, _ := recordIn(dir, s).Tools()
	if len(d.Sent()) != 2 || kept == nil || kept.Count() != 1 || len(kept.Sent()) != 2 {
		t.Fatalf("listed: %+v, kept: %+v", d.Sent(), kept)
	}
	for i, raw := range tools {
		want, err := pins.Define(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		want.Hints = pins.Hints{ReadOnly: i == 0, Destructive: i == 1}
		for from, got := range map[string]pins.Definition{"the server": d.Sent()[i], "disk": kept.Sent()[i]} {
			if got.Name != want.Name || got.Digest != want.Digest || got.Hints != want.Hints {
				t.Errorf("from %s: %+v, want %+v", from, got, want)
			}
		}
	}
}

// TestListThatIsTooLongIsCut where all names, or all definitions, are as long as they may be.
func TestListThatIsTooLongIsCut(t *testing.T) {
	name := func(i int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"name":"%0*d"}`, maxToolName, i)) }
	huge := json.RawMessage(`{"name":"t","x":"` + strings.Repeat("x", maxDefinition) + `"}`) // left out, but it came
	for what, tt := range map[string]struct {
		tool func(i int) json.RawMessage
		most int
	}{
		"names":       {name, maxNames/maxToolName + 1},
		"definitions": {func(int) json.RawMessage { return huge }, maxToolBytes / len(huge)},
	} {
		b, n := NewBuilder(slog.New(slog.DiscardHandler)), 0
		for n <= tt.most && add(t, b, []json.RawMessage{tt.tool(n)}) {
			n++
		}
		if n != tt.most {
			t.Errorf("%s: the list ends after %d tools, want %d", what, n, tt.most)
		}
	}
}
