//go:build collector

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheCollectorTakesSignals: the OpenTelemetry Collector itself, as docs/observability.md
// configures it, understands what is exported, and Prometheus gets the names that the dashboard
// asks for. `make test-collector` builds it, and names it in TOOLCELL_TEST_COLLECTOR.
func TestTheCollectorTakesSignals(t *testing.T) {
	h := firstHost(t)
	signals, metrics, said := startCollector(t, os.Getenv("TOOLCELL_TEST_COLLECTOR"))
	site := newSite(t)
	at := site.hostPort()
	client := h.serve(t, site.env(fmt.Sprintf("allow = [%q]\nprivate = [%q]", at, siteAddress), env{
		"TOOLCELL_SERVERS_CONFIG": fakeConfig(t, nil), "OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + signals, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
	}))
	code := "import asyncio\nprint(await mcp_search.search(query='q'))\ntry:\n    await mcp_search.search(query=7)\nexcept Exception: pass"
	for range 2 {
		if r := client.python(t, code, "search"); r.isError {
			t.Fatal(r.text)
		}
	}
	download := fmt.Sprintf("import urllib.request\nlen(urllib.request.urlopen('https://%s/bytes?n=100000').read())", at)
	client.call(t, map[string]any{"code": download, "servers": []string{"https://" + at}, "timeout": seconds(60)}).want(t, "100000")
	client.Close() // which exports all

	for _, want := range []string{
		"Name           : tools/call run_python", "Kind           : Server", "Name           : toolcell.run", "Name           : toolcell.sandbox.start", "Name           : tools/call search", "Kind           : Client",
		"-> gen_ai.operation.name: Str(execute_tool)", "-> toolcell.server.name: Str(search)", "-> service.name: Str(toolcell)", "-> toolcell.run.calls: Int(1)",
		"-> Name: mcp.client.operation.duration", "-> Unit: s", "-> DataType: Histogram", "-> AggregationTemporality: Cumulative", "-> DataType: Sum", "-> IsMonotonic: false",
		"-> toolcell.verdict: Str(refused)", "-> error.type: Str(invalid_arguments)", "-> toolcell.writes: Bool(", "-> Name: toolcell.call.refused", "-> IsMonotonic: true",
		"-> toolcell.run.network.received: Int(1", "-> Name: toolcell.run.network.io", "-> Unit: By",
	} {
		waitFor(t, "the collector to print "+want, func() bool { return strings.Contains(said.String(), want) })
	}
	scraped := scrape(t, metrics)
	lacks, _ := h.lacks("CGROUP")
	uncounted := lacks || os.Geteuid() != 0 // perhaps: a user may have no cgroup
	for _, name := range dashboardMetrics(t) {
		asked := strings.HasPrefix(name, "toolcell_ask") || strings.HasPrefix(name, "toolcell_package") // nothing was
		taken := strings.HasPrefix(name, "toolcell_run_cpu") || strings.HasPrefix(name, "toolcell_run_memory")
		if !asked && !(taken && uncounted) && !strings.Contains(scraped, "\n"+name+"{") {
			t.Errorf("Prometheus does not get %s", name)
		}
	}
	line := regexp.MustCompile(`mcp_client_operation_duration_seconds_count\{[^}]*gen_ai_tool_name="search"[^}]*toolcell_server_name="search"[^}]*\} 2`)
	if !line.MatchString(scraped) {
		t.Errorf("Prometheus gets of calls:\n%s", strings.Join(regexp.MustCompile(`(?m)^mcp_client_operation_duration_seconds_count.*$`).FindAllString(scraped, -1), "\n"))
	}
	if refused := regexp.MustCompile(`toolcell_call_refused_total\{[^}]*error_type="invalid_arguments"[^}]*gen_ai_tool_name="search"[^}]*\} 2`); !refused.MatchString(scraped) {
		t.Error("Prometheus does not get the calls that were refused")
	}
	if strings.Contains(said.String(), "\terror\t") { // the level of a line of its log
		t.Errorf("the collector has errors:\n%s", said)
	}
}

// startCollector starts the collector with the configuration of the document, on other ports.
func startCollector(t *testing.T, program string) (signals, metrics string, said *syncBuffer) {
	t.Helper()
	blocks, err := docBlocks(read(t, "../../../docs/observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(blocks, func(b docBlock) bool { return b.mark == "file" && b.arg == "collector.yaml" })
	signals, metrics = fmt.Sprint("127.0.0.1:", freePort(t)), fmt.Sprint("127.0.0.1:", freePort(t))
	config := strings.NewReplacer("0.0.0.0:4318", signals, "0.0.0.0:8889", metrics, "service:\n", "service:\n  telemetry:\n    metrics:\n      level: none\n").Replace(blocks[at].text)
	file := filepath.Join(t.TempDir(), "collector.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said = &syncBuffer{}
	c := exec.Command(program, "--config", file)
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the collector:\n%s", said)
		}
	})
	waitFor(t, "the collector to be ready", func() bool { return strings.Contains(said.String(), "Everything is ready") })
	return signals, metrics, said
}

// scrape reads metrics as Prometheus does.
func scrape(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/metrics", address))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return "\n" + string(text)
}

// dashboardMetrics are the names that the dashboard asks Prometheus for.
func dashboardMetrics(t *testing.T) []string {
	t.Helper()
	text := read(t, "../../../docs/observability/dashboard.json")
	names := regexp.MustCompile(`\b(?:mcp|toolcell)_[a-z_]+(?:_seconds_bucket|_seconds_count|_bytes_bucket|_bytes_sum|_active|_total)\b`).FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}
