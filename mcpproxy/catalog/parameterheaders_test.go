package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestToolsWithUnusableHeadersAreLeftOut(t *testing.T) {
	const one = `{"type":"string","x-mcp-header":"Region"}`
	within := func(depth int, properties string) string {
		return strings.Repeat(`"o":{"type":"object","properties":{`, depth) + properties + strings.Repeat("}}", depth)
	}
	for name, tt := range map[string]struct{ properties, want string }{
		"good":            {`"a":` + one + `,"b":{"type":"integer","x-mcp-header":"N"},"c":{"type":"boolean","x-mcp-header":"B"},"d":true`, ""},
		"nested":          {`"o":{"type":"object","properties":{"a":` + one + `}}`, ""},
		"no headers":      {`"a":{"type":["string","null"]}`, ""},
		"null":            {`"a":null,"b":` + one, ""},
		"empty":           {`"a":{"type":"string","x-mcp-header":""}`, "is no name for a header"},
		"no text":         {`"a":{"type":"string","x-mcp-header":7}`, "is no name for a header"},
		"with a space":    {`"a":{"type":"string","x-mcp-header":"My Region"}`, "is no name for a header"},
		"with a colon":    {`"a":{"type":"string","x-mcp-header":"Region:Primary"}`, "is no name for a header"},
		"not ASCII":       {`"a":{"type":"string","x-mcp-header":"Région"}`, "is no name for a header"},
		"another header":  {`"a":{"type":"string","x-mcp-header":"X\r\nHost"}`, "is no name for a header"},
		"of an object":    {`"a":{"type":"object","x-mcp-header":"A"}`, "needs the type"},
		"of a number":     {`"a":{"type":"number","x-mcp-header":"A"}`, "needs the type"},
		"of several":      {`"a":{"type":["string","null"],"x-mcp-header":"A"}`, "needs the type"},
		"of nothing":      {`"a":{"x-mcp-header":"A"}`, "needs the type"},
		"twice":           {`"a":` + one + `,"b":{"type":"string","x-mcp-header":"REGION"}`, "is that of another"},
		"twice at depths": {`"a":` + one + `,"o":{"type":"object","properties":{"a":` + one + `}}`, "is that of another"},
		"the deepest":     {within(maxHeaderDepth, `"a":{"type":"string","x-mcp-header":""}`), "is no name for a header"},
		"deeper":          {within(maxHeaderDepth+1, `"a":{"type":"string","x-mcp-header":""}`), ""},
		"very deep":       {within(1000, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"name":"t","inputSchema":{"type":"object","properties":{%s}}}`, tt.properties)
			if !json.Valid([]byte(raw)) {
				t.Fatal("the test is not JSON")
			}
			b := NewBuilder(slog.New(slog.DiscardHandler))
			b.OverHTTP = true
			add(t, b, []json.RawMessage{json.RawMessage(raw), json.RawMessage(`{"name":"other","inputSchema":{"type":"object"}}`)})
			if tt.want == "" {
				if b.Count() != 2 {
					t.Errorf("left out: %+v", b.defs.left)
				}
				return
			}
			if b.Count() != 1 || len(b.defs.left) != 1 {
				t.Fatalf("%d tools, left out %+v", b.Count(), b.defs.left)
			}
			mcptest.WantError(t, errors.New(b.defs.left[0].Reason), tt.want)
			stdio := NewBuilder(slog.New(slog.DiscardHandler)) // has no headers
			if add(t, stdio, []json.RawMessage{json.RawMessage(raw)}); stdio.Count() != 1 {
				t.Errorf("over stdio: left out %+v", stdio.defs.left)
			}
		})
	}
}
