package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.JSON(`{"name":"t","inputSchema":{"type":"object","x":`, `}}`)
	shapes = append(shapes, boundtest.Between(`{"name":"t","inputSchema":{"type":"object","properties":{`, `}}}`,
		boundtest.Counted("parameters", "", `"p%d":{"type":"string","description":"d\u00e9"}`, ",", ""))...)
	shapes = append(shapes, boundtest.Between(`{"name":"t","description":`, `}`, boundtest.JSON("", "")[11:16]...)...)
	shapes = append(shapes, boundtest.Between(`{"name":"t","inputSchema":{"x-mcp-header":"a","properties":{"a":`, `}}}`,
		boundtest.Named(boundtest.Pick(boundtest.JSON("", ""), "deep objects", "a wide object", "open lists"), " with headers")...)...)
	shapes = append(shapes,
		boundtest.Counted("headers", `{"name":"t","inputSchema":{"properties":{`, `"p%d":{"type":"string","x-mcp-header":"H%[1]d"}`, ",", `}}}`),
		boundtest.Nested("deep headers", `{"name":"t","inputSchema":{"x-mcp-header":"a","properties":{"a":`, `}}}`),
	)
	const tools = `{"tools":[`
	record := boundtest.Between(tools, "]}",
		boundtest.Counted("tools", "", `{"name":"tool_%d","digest":"d","inputSchema":{"type":"object"}}`, ",", ""),
		boundtest.Counted("names of one alias", "", `{"name":"tool %d"},{"name":"tool_%[1]d"},{"name":"Tool-%[1]d"}`, ",", ""),
		boundtest.Repeated("twins", `{"name":"t"}`, `,{"name":"t"}`, ""),
		boundtest.Shape{Name: "names in all cases", Make: func(n int) []byte { return []byte(inAllCases(n)) }},
		boundtest.Repeated("long names", `{"name":"t"}`, `,{"name":"`+strings.Repeat("nA-", 170)+`"}`, ""),
		boundtest.Repeated("empty tools", "{}", ",{}", ""),
		boundtest.Repeated("long schemas", `{"name":"t"}`, `,{"name":"u","inputSchema":{"a":"`+strings.Repeat("s", 200<<10)+`"}}`, ""),
	)
	record = append(record, boundtest.Pick(boundtest.JSON(tools+`{"name":"t","inputSchema":`, "}]}"), "deep lists", "open objects", "many small objects", "a wide object", "escapes", "a huge number")...)
	record = append(record, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"left":`, "}"), "many empty objects", "a long string"), " left out")...)
	boundtest.Run(t, boundtest.Parser{
		Row: "record of a server's tools", Shapes: record,
		Parse: func(text []byte) error {
			digest := sha256.Sum256(text)
			line, err := json.Marshal(head{Format: recordFormat, Size: len(text), Digest: hex.EncodeToString(digest[:])})
			if err != nil {
				return err
			}
			_, d, err := decodeRecord(append(append(line, '\n'), text...))
			if err != nil {
				return err
			}
			l := newList(d, toolFilter{deny: []string{"*a*b"}})
			l.Resolve("no_such_tool")
			return l.Missing("server", "no_such_tool")
		},
	}, boundtest.Parser{
		Row: "tool definition", Shapes: shapes,
		ParseContext: func(ctx context.Context, text []byte) error {
			b := NewBuilder(slog.New(slog.DiscardHandler))
			b.OverHTTP = true
			_, err := b.Add(ctx, []json.RawMessage{text})
			return err
		},
	})
}

// inAllCases is about n bytes of tools whose names differ in their case only.
func inAllCases(n int) string {
	var all strings.Builder
	for i := 0; all.Len() < n-100; i++ {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(`{"name":"`)
		for bit := range 30 {
			all.WriteByte("aA"[i>>bit&1])
		}
		all.WriteString(`"}`)
	}
	return all.String()
}
