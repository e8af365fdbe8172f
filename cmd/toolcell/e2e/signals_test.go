package e2e

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/signals/signalstest"
)

// TestCommandsExportSignals to a collector that the environment names, and serve writes a log that
// refers to them.
func TestCommandsExportSignals(t *testing.T) {
	h := firstHost(t)
	servers := fakeConfig(t, nil)
	to := func(c *signalstest.Collector) env {
		return env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": servers, "OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}
	}
	t.Run("exec", func(t *testing.T) {
		c := signalstest.Start(t)
		if out, errs, code := h.run(t, to(c), "exec", "--server", "search", "-c", "print(await mcp_search.search(query='q'))"); code != exitOK || errs != "" {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		ran, started, called := c.Named("toolcell.run"), c.Named("toolcell.sandbox.start"), c.Named("tools/call search")
		if len(ran) != 1 || len(started) != 1 || len(called) != 1 || len(c.Spans()) != 3 {
			t.Fatalf("the spans are %v", c.Spans())
		}
		if len(ran[0].ParentSpanId) > 0 || ran[0].Attrs["toolcell.run.status"] != "success" || ran[0].Attrs["toolcell.run.calls"] != "1" || started[0].Attrs["toolcell.start.kind"] != "cold" {
			t.Errorf("the run: %v; its sandbox: %v", ran[0], started[0])
		}
		if got := called[0]; string(got.ParentSpanId) != string(ran[0].SpanId) || got.Attrs["network.transport"] != "pipe" || got.Attrs["server.address"] != "" {
			t.Errorf("the call: %v", got)
		}
		if points, _ := c.Points("mcp.client.session.duration"); len(points) != 1 || points[0]["toolcell.server.name"] != "search" {
			t.Errorf("sessions: %v", points)
		}
	})
	t.Run("servers call", func(t *testing.T) {
		c := signalstest.Start(t)
		if out, errs, code := h.run(t, to(c), "servers", "call", "search", "search", "query=q"); code != exitOK {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		if called := c.Spans(); len(called) != 1 || called[0].Name != "tools/call search" || len(called[0].ParentSpanId) > 0 {
			t.Errorf("the spans are %v", called)
		}
	})
	t.Run("serve", func(t *testing.T) {
		c := signalstest.Start(t)
		e := to(c)
		e["OTEL_BSP_SCHEDULE_DELAY"] = "50"
		client := connect(t, h.command(t, e, "serve", "--log-json"))
		if r := client.python(t, "1 + 1"); r.isError {
			t.Fatal(r.text)
		}
		c.Await("the span of the call", func() bool { return len(c.Named("tools/call run_python")) == 1 })
		ran := c.Named("toolcell.run")
		client.Close()
		if points, _ := c.Points("mcp.server.session.duration"); len(points) != 1 {
			t.Errorf("sessions: %v", points)
		}
		var found bool
		for text := range strings.SplitSeq(strings.TrimSpace(client.stderr.String()), "\n") {
			var line struct {
				Msg, Run string
				Trace    string `json:"trace_id"`
			}
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Errorf("no JSON: %s", text)
			}
			found = found || line.Msg == "run" && line.Run == ran[0].Attrs["toolcell.run.id"] && len(line.Trace) == 32
		}
		if !found {
			t.Errorf("no line of the run %v:\n%s", ran, client.stderr)
		}
	})
}

// TestCollectorThatHangsFailsNothing: exec ends, and says once that signals are lost.
func TestCollectorThatHangsFailsNothing(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, errs, code := firstHost(t).run(t, env{"TOOLCELL_IMAGE": "host", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String()}, "exec", "-c", "print(1)")
	if code != exitOK || out != "1\n" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "OpenTelemetry signals are lost") {
		t.Errorf("exit %d, %q\n%s", code, out, errs)
	}
}
