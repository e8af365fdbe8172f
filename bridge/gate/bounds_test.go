package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

func TestBounds(t *testing.T) {
	bound := boundtest.Pick(boundtest.JSON(`{"p0":`, "}"), "deep lists", "deep objects", "a wide object", "a wide list", "many empty objects", "many small objects", "a long string", "escapes", "a huge number", "a huge exponent", "a long key", "open lists")
	bound = append(bound, boundtest.Named(boundtest.Pick(boundtest.JSON("", ""), "twins", "a wide object", "many small objects", "long keys"), " by name")...)
	bound = append(bound,
		boundtest.Counted("parameters", "{", `"p%d":{"k":[1,"x"]}`, ",", "}"),
		boundtest.Counted("parameters that are alike", "{", `"p-%d":1,"P%[1]d":"x"`, ",", "}"),
		boundtest.Repeated("values of an enum", `{"p1":["v1"`, `,"v4999"`, "]}"),
	)
	planned := append(boundtest.Pick(boundtest.JSON(`{"a":`, "}"), "a long string", "escapes", "many small objects"),
		boundtest.Counted("other results", `{"a":"`, "<result 9%d>", "", `"}`),
		boundtest.Repeated("beginnings of results", `{"a":"`, `\u003cresult%20`, `"}`),
	)
	boundtest.Run(t,
		boundtest.Parser{Row: "arguments to bind", Shapes: bound, Before: func() { hostileSignatures() }, ParseContext: func(ctx context.Context, text []byte) (err error) {
			for _, sig := range hostileSignatures() {
				for _, p := range []Request{{Arguments: text}, {Named: text}, {Args: fmt.Appendf(nil, "[%s]", text)}} {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					_, wrong := p.bindTo(ctx, "tool", sig)
					err = errors.Join(err, wrong)
				}
			}
			return err
		}},
		boundtest.Parser{Row: "results of planned calls", Shapes: planned, ParseContext: func(ctx context.Context, text []byte) error {
			used, err := usedResult(ctx, text, 10)
			usesCutPlaceholder(ctx, text)
			return cmp.Or(err, errors.New(used))
		}},
	)
}

// hostileSignatures have as many parameters, values and branches as schemas may have, and
// branches that look at the same value again and again.
var hostileSignatures = sync.OnceValue(func() (all []*signature.Signature) {
	list := func(n int, format string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		return strings.Join(items, ",")
	}
	for _, schema := range []string{
		`{}`,
		`{"properties":{` + list(1000, `"p#":{"type":"object","properties":{"k":{"type":"array","items":{"type":"integer"}}}}`) + `}}`,
		`{"properties":{` + list(1000, `"`+strings.Repeat("p", 100)+`#":{}`) + `},"additionalProperties":false}`,
		`{"properties":{"p0":{"enum":[` + list(2000, `"value that is long #"`) + `]},"p1":{"items":{"enum":[` + list(2000, `"v#"`) + `]}}}}`,
		`{"properties":{"p0":{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/d"},`, 100) + `{"$ref":"#/$defs/d"}]}},"$defs":{"d":{"anyOf":[` + list(2000, `{"const":"c#"}`) + `]}}}`,
		`{"properties":{"p0":{"$ref":"#/$defs/d"}},"$defs":{"d":{"anyOf":[{"items":{"$ref":"#/$defs/d"}},{"additionalProperties":{"$ref":"#/$defs/d"}},{"items":{"type":"null"}},{"required":["z"]}]}}}`,
	} {
		all = append(all, signature.New(json.RawMessage(schema), nil))
	}
	return all
})
