package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// BenchmarkLists makes the pages of a record with 10,000 runs.
func BenchmarkLists(b *testing.B) {
	dir := b.TempDir()
	j := record.Open(record.Options{Dir: dir, Host: "vm"})
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10_000 {
		run := j.Begin(fmt.Sprintf("run%07d", i), "")
		must(run.Append(record.RunStart{
			Command: "serve", Client: record.Client{Name: "claude-code", Version: "2.1.0"}, Grants: record.Grants{Servers: []string{"bank"}},
			Code: record.TextOf(fmt.Sprintf("import json\nfor n in range(%d):\n    print(json.dumps(await mcp_bank.balance(account=n)))\n", i)),
		}))
		for call := range 3 {
			must(run.Append(record.CallStart{Call: call + 1, Line: 3, Effect: "tools/call", Server: "bank", Tool: "balance", Arguments: record.TextOf(`{"account": 1}`)}))
			must(run.Append(record.CallEnd{Call: call + 1, Line: 3, Server: "bank", Tool: "balance", Outcome: record.OK, Duration: 1500, Answer: record.TextOf(`{"content": []}`)}))
		}
		must(run.Append(record.RunEnd{Status: "success", Duration: 4000, Calls: 3}))
	}
	must(j.Close())
	s := New(testAddress("127.0.0.1:9"), Options{
		Record: history.Open(dir), Connect: func() ([]*inbox.Client, error) { return nil, nil },
		Shown: func() timeline.Options { return timeline.Options{} }, ReadsOnly: func() string { return "" },
	})
	page := s.Handler()
	for name, path := range map[string]string{
		"waiting": "/", "newest": "/runs", "thousand": "/runs?n=1000", "found": "/runs?q=range(7)", "filtered": "/runs?status=killed", "run": "/runs/run0005000",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9"+path, nil)
				r.AddCookie(&http.Cookie{Name: cookieName, Value: s.cookie})
				w := httptest.NewRecorder()
				page.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}

// A testAddress is where nobody listens.
type testAddress string

func (testAddress) Network() string  { return "tcp" }
func (a testAddress) String() string { return string(a) }
