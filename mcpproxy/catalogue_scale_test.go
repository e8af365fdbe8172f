package mcpproxy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
func manyOf(tb testing.TB, dir, starts string, servers, tools, parameters int) []Server {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	var kinds []definitions // making one takes as long as making the index of it
	for i := range min(servers, 10) {
		kinds = append(kinds, kindOfServer(tb, i, tools, parameters))
	}
	var all []Server
	for i := range servers {
		s := Server{
			Name: fmt.Sprintf("server-%d", i), Alias: fmt.Sprintf("server_%d", i), Transport: Stdio, Command: exe, Source: "test.json",
			Env: map[string]string{"FAKE_SERVER": "raw", "FAKE_STARTS": starts, "GORACE": "atexit_sleep_ms=0"},
		}
		recordIn(dir, s).put(kinds[i%len(kinds)], 0)
		all = append(all, s)
	}
	return all
}

func kindOfServer(tb testing.TB, i, tools, parameters int) definitions {
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
	return definitionsOf(tb, defs...)
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
	dir, starts := t.TempDir(), filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{CatalogueDir: dir}, manyOf(t, dir, starts, scaleServers, scaleTools, 1)...)
	for _, st := range p.Servers() {
		if st.Tools != scaleTools || st.Status != "idle" {
			t.Fatalf("status = %+v", st)
		}
	}
	docs, problems, err := p.Search(t.Context(), "create an issue", 10, true)
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

// TestCatalogueFigures measures what the README says of 100 servers with 100
// tools each: RUNCELL_FIGURES=1 go test -run TestCatalogueFigures -v.
func TestCatalogueFigures(t *testing.T) {
	if os.Getenv("RUNCELL_FIGURES") == "" {
		t.Skip("RUNCELL_FIGURES=1 measures")
	}
	dir := t.TempDir()
	servers := manyOf(t, dir, "", scaleServers, scaleTools, 4)
	runtime.GC()
	before := resident(t, "VmRSS")
	figure := func(what string, f func()) {
		start, cpu := time.Now(), processorTime(t)
		f()
		took, used := time.Since(start), processorTime(t)-cpu
		t.Logf("%-34s %9.3f ms, %9.3f ms of processors", what, float64(took.Microseconds())/1000, float64(used.Microseconds())/1000)
	}
	var p *Proxy
	figure("New", func() { p = New(Config{Servers: servers}, Options{CatalogueDir: dir}) })
	t.Cleanup(func() { _ = p.Close() })
	figure("Servers, first", func() { p.Servers() })
	figure("Servers", func() { p.Servers() })
	search := func() {
		if docs, _, err := p.Search(t.Context(), "change the milestone of an issue", 5, false); err != nil || len(docs) != 5 {
			t.Fatalf("%d docs, %v", len(docs), err)
		}
	}
	figure("search, first: read and index all", search)
	figure("search", search)
	figure("search", search)
	figure("docs of a server, full", func() { _, _ = p.Docs(t.Context(), "server-50", "", true) })
	figure("docs of one tool, full", func() { _, _ = p.Docs(t.Context(), "server-51", "get_issue", true) })
	t.Logf("%-34s %8.1f MB, at most %.1f MB (before: %.1f)", "resident", resident(t, "VmRSS"), resident(t, "VmHWM"), before)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%-34s %8.1f MB", "heap in use", float64(m.HeapInuse)/1e6)
}

// processorTime is what this process has used, which a busy machine does not
// lengthen.
func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident reads a line of /proc/self/status, in megabytes.
func resident(tb testing.TB, field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return float64(kb) / 1000
}
