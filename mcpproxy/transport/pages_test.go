package transport

import (
	"context"
	"strings"
	"testing"
)

func TestPagesAreReadWhateverTheyAre(t *testing.T) {
	many := "[" + strings.Repeat("1,", maxItems) + "1]"
	long := `"` + strings.Repeat("c", 7*maxCursor) + `"`
	for text, want := range map[string]struct {
		items       int
		cursor, err string
	}{
		`{}`:                       {},
		`{"tools":null}`:           {},
		`{"tools":{ }}`:            {},
		`{"tools": [1, {"a":[]}]}`: {items: 2},
		`{"nextCursor":"\u00e9","to\u006fls":[1]}`: {items: 1, cursor: "é"},
		`{"tools":7,"tools":[1]}`:                  {items: 1},
		`{"tools":[1],"tools":7}`:                  {err: `its "tools" must be a list, not a number`},
		`{"tools":{"a":1}}`:                        {err: `its "tools" must be a list, not an object`},
		`{"tools":[],"nextCursor":7}`:              {err: `"nextCursor" must be text, not a number`},
		`{"tools":[],"nextCursor":null}`:           {},
		`{"tools":[],"nextCursor":` + long + `}`:   {},
		`{"tools":` + many + `}`:                   {err: `its "tools" has more than 100000 items`},
		`{"tools":[1,`:                             {err: "it is not JSON from byte 12 on"},
	} {
		p, err := readPage(t.Context(), []byte(text), "tools")
		var cursor string
		if err == nil {
			cursor, err = p.next()
		}
		if want.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), want.err) {
				t.Errorf("%.60s: %v", text, err)
			}
			continue
		}
		if err != nil || len(p.items) != want.items || cursor != want.cursor {
			t.Errorf("%.60s: %d items, %q, %v", text, len(p.items), cursor, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := readPage(ctx, []byte(`{"tools":[1]}`), "tools"); err == nil {
		t.Errorf("a page that nobody waits for: %d items", len(p.items))
	}
}
