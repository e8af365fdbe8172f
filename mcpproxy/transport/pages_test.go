package transport

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestPagesAreReadWhateverTheyAre(t *testing.T) {
	open := "[" + strings.Repeat("1,", maxItems) + "1" // one too many
	many := open + "]"
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
		`{"tools":[` + many[len("[1,"):] + `}`:     {items: maxItems},
		`{"tools":` + many + `}`:                   {err: `its "tools" has more than 100000 items`},
		`{"tools":` + open + `,"tools":[1]}`:       {err: `its "tools" has more than 100000 items`}, // what follows is no member
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

func TestPagesOfAListAreBounded(t *testing.T) {
	var has, asked atomic.Int64 // pages
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk"}, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method != MethodListTools {
				return next(ctx, method, r)
			}
			page := &mcp.ListToolsResult{}
			if n := asked.Add(1); n < has.Load() {
				page.NextCursor = strconv.FormatInt(n, 10)
			}
			return page, nil
		}
	})
	k := newTalk(t)
	go func() { _ = server.Run(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(k.in), Writer: k.out}) }()
	k.do(t.Context(), []string{"connect"})
	if err := <-k.connected; err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		has  int64
		want error
	}{{maxPages, nil}, {maxPages + 1, ErrTooManyPages}} {
		has.Store(tt.has)
		asked.Store(0)
		var pages int
		var ended error
		for _, err := range k.session.Pages(t.Context(), MethodListTools) {
			if ended = err; err == nil {
				pages++
			}
		}
		if pages != maxPages || asked.Load() != maxPages || !errors.Is(ended, tt.want) {
			t.Errorf("a list of %d pages: %d came, %d were asked for, %v", tt.has, pages, asked.Load(), ended)
		}
	}
}
