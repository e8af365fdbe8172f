package pins

import (
	"context"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.JSON(`{"name":"t","inputSchema":`, "}"), "deep lists", "deep objects", "open objects", "many empty lists", "many small objects", "escapes", "a huge number")
	shapes = append(shapes, boundtest.Pick(boundtest.Text(`{"name":"t","description":"`, `"}`), "one word", "overrides", "joiners", "tags", "characters that fold to many")...)
	shapes = append(shapes,
		boundtest.Repeated("members in other cases", `{"name":"t"`, `,"Name":"t","NAME":"t"`, "}"),
		boundtest.Repeated("sentences", `{"name":"t","description":"`, "a. b. ", `"}`),
		boundtest.Repeated("lines of text", `{"name":"t","description":"`, `a\n`, `"}`),
		boundtest.Counted("other lines of text", `{"name":"t","description":"`, `a%d\n`, "", `"}`),
		boundtest.Counted("other members", `{"name":"t","inputSchema":{`, `"k%d":[1,2]`, ",", "}}"),
	)
	parts := boundtest.Pick(boundtest.JSON("", ""), "deep lists", "deep objects", "open objects", "a wide object", "many empty lists", "many small objects", "escapes", "a huge number")
	parts = append(parts, boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "overrides", "tags")...)
	parts = append(parts, boundtest.Repeated("sentences", "", "a. b. ", ""), boundtest.Counted("other lines", "", "a%d\n", "", ""))
	boundtest.Run(t, boundtest.Parser{Row: "definition that is pinned", Shapes: shapes, ParseContext: func(ctx context.Context, raw []byte) error {
		// as package catalog does
		_, err := memory.Decode(ctx, "reading a definition", len(raw), memory.Definition, func() (Hints, error) {
			_, err := Define(raw)
			return ReadHints(raw), err
		})
		return err
	}}, boundtest.Parser{Row: "change of a definition", Shapes: parts, Parse: func(part []byte) error {
		shown := func(part []byte) *Version {
			s := text.Bound(string(part), maxShown)
			return &Version{Shown: Shown{"title": s, "description": s, "inputSchema": s, "outputSchema": s, "annotations": s}, Hidden: []string{"x"}}
		}
		now := shown(part)
		for _, before := range [][]byte{nil, []byte(`{"a":[1,2]}`), part[:len(part)/2], slices.Concat(part[len(part)/2:], part[:len(part)/2])} {
			(&Tool{Pinned: shown(before), Seen: now}).Differences()
		}
		now.HiddenLines()
		return nil
	}})
}
