package mcpproxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// toolDefinitions makes definitions of JSON tools.
func toolDefinitions(tb testing.TB, tools ...string) catalog.Definitions {
	tb.Helper()
	b := catalog.NewBuilder(slog.New(slog.DiscardHandler))
	for _, t := range tools {
		if _, err := b.Add(tb.Context(), []json.RawMessage{json.RawMessage(t)}); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Definitions()
}

// diskRecord is the record of a server in a folder.
func diskRecord(dir string, s config.Server) *catalog.Record {
	return catalog.NewRecord(s, catalog.Store{Dir: dir, Log: slog.New(slog.DiscardHandler)})
}

const scaleServers, scaleTools = 100, 100

// wordsOfTools make tools that differ as real ones do.
var wordsOfTools = strings.Fields(`issue branch commit file folder message channel invoice customer order ticket page
	block database record event calendar contact campaign pipeline deployment container volume metric alert dashboard
	query table column index report photo album track playlist shipment address payment refund coupon review comment
	label milestone release webhook secret token session user group role policy workspace project task sprint board
	snippet package registry image cluster node service route certificate domain mailbox thread attachment draft note
	notebook cell dataset model experiment run artifact feature flag segment audience survey answer form field`)

var verbsOfTools = strings.Fields("create list get update delete search export import archive share move copy watch merge")

// manyOf fills dir with the records of servers that were never started, and
// returns their entries. Starts are noted in the file starts; parameters, 1 to
// 4, is how large the schemas are.
func manyOf(tb testing.TB, dir, starts string, servers, tools, parameters int) []config.Server {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	var kinds []catalog.Definitions // making one takes as long as making the index of it
	for i := range min(servers, 10) {
		kinds = append(kinds, kindOfServer(tb, i, tools, parameters))
	}
	var all []config.Server
	for i := range servers {
		s := config.Server{
			Name: fmt.Sprintf("server-%d", i), Alias: fmt.Sprintf("server_%d", i), Transport: config.Stdio, Command: exe, Source: "test.json",
			Env: map[string]string{"FAKE_SERVER": "raw", "FAKE_STARTS": starts, "GORACE": "atexit_sleep_ms=0"},
		}
		diskRecord(dir, s).Put(kinds[i%len(kinds)], 0)
		all = append(all, s)
	}
	return all
}

func kindOfServer(tb testing.TB, i, tools, parameters int) catalog.Definitions {
	noun := func(n int) string { return wordsOfTools[n%len(wordsOfTools)] }
	var defs []string
	for j := range tools {
		verb, a, c := verbsOfTools[(i+j)%len(verbsOfTools)], noun(i*7+j), noun(i+j*3+11)
		def, err := json.Marshal(map[string]any{
			"name": fmt.Sprintf("%s_%s_%d", verb, a, j),
			"description": fmt.Sprintf("%s the %s of a %s. Gives its number, its name and when it was changed last. "+
				"Needs the right to %s each %s in the workspace; large ones are given in pages.", verb, a, c, verb, a),
			"annotations": map[string]any{"readOnlyHint": verb == "get" || verb == "list", "title": verb + " " + a},
			"inputSchema": parametersOf([]string{a, c, noun(j), noun(i + 5)}[:parameters]...),
		})
		if err != nil {
			tb.Fatal(err)
		}
		defs = append(defs, string(def))
	}
	return toolDefinitions(tb, defs...)
}

// parametersOf is a schema with two parameters for each name. Four give one of
// more than a kilobyte, as many real tools have.
func parametersOf(names ...string) map[string]any {
	props := map[string]any{}
	for _, n := range names {
		props[n+"_id"] = map[string]any{"type": "string", "description": "The identifier of the " + n + ", as its list gives it"}
		props[n+"_options"] = map[string]any{"type": "object", "description": "What else to do with the " + n, "properties": map[string]any{
			"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "How many at most"},
			"order": map[string]any{"type": "string", "enum": []string{"asc", "desc"}},
		}}
	}
	return map[string]any{"type": "object", "properties": props, "required": []string{names[0] + "_id"}, "additionalProperties": false}
}

func TestNothingStartsOnceToolsAreKnown(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir, starts := t.TempDir(), filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{CatalogDir: dir}, manyOf(t, dir, starts, scaleServers, scaleTools, 1)...)
	for _, st := range p.Servers() {
		if st.Tools != scaleTools || st.Status != "idle" {
			t.Fatalf("status = %+v", st)
		}
	}
	docs, problems, err := p.Search(t.Context(), "create an issue", 10, true, AnyServer)
	if err != nil || len(problems) > 0 || len(docs) != 10 {
		t.Fatalf("%d docs, %v, %v", len(docs), problems, err)
	}
	for _, d := range docs {
		if !strings.Contains(string(d.InputSchema), `"required"`) {
			t.Errorf("the schema of %s is %s", d.Tool, d.InputSchema)
		}
	}
	for _, name := range []string{"server-0", "server_99"} {
		if docs, err := p.Docs(t.Context(), name, "", true); err != nil || len(docs) != scaleTools || docs[0].InputSchema == nil {
			t.Errorf("%s: %d docs, %v", name, len(docs), err)
		}
		if tools, err := p.Tools(t.Context(), name); err != nil || len(tools) != scaleTools || tools[0].Alias == "" {
			t.Errorf("%s: %d tools, %v", name, len(tools), err)
		}
	}
	if got := lines(starts); len(got) > 0 {
		t.Errorf("%d servers were started", len(got))
	}
}
