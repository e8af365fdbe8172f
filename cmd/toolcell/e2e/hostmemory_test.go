package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// crowdedServer has as many tools as a catalog accepts.
func crowdedServer() {
	var tools []string
	for i := range 20_000 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"does the thing number %d of many, with care","inputSchema":`+
			`{"type":"object","properties":{"path":{"type":"string"},"size":{"type":"integer"}},"required":["path"]}}`, i, i))
	}
	serveAnswers(map[string]string{"tools/list": `{"tools":[` + strings.Join(tools, ",") + `]}`})
}

// greedy is the beginning of code that makes toolcell take memory, which no limit of
// the sandbox counts. put and ask write frames themselves, and do not read answers.
const greedy = `
import json, os, time
def put(*parts):
    for part in (sum(map(len, parts)).to_bytes(4, "big"), *parts):
        rest = memoryview(part)
        while rest: rest = rest[os.write(3, rest):]
def ask(method, n=256, **params):
    for i in range(n): put(json.dumps({"type": "call", "id": i, "method": method, "params": params}).encode())
    time.sleep(60)
head = b'{"type":"call","id":1,"method":"call_tool","params":{"server":"crowded","arguments":'
`

// makePNG defines png, which makes a black picture with so many bytes that its decoder
// skips.
const makePNG = `
import base64, struct, zlib
def chunk(kind, body): return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
def png(side, skipped):
    pixels = zlib.compress(bytes(side * (1 + 4 * side)), 1)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 6, 0, 0, 0)) +
        chunk(b"juNk", bytes(skipped)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")).decode()
`

var greed = map[string]string{
	"large frames":         `while True: put(head, b'"', b"x" * (47 << 20), b'"}}')`,
	"frames of many lists": `while True: put(head, b"[", b"{}," * (15 << 20), b"{}]}}")`,
	"unfinished frames":    `os.write(3, (48 << 20).to_bytes(4, "big")); put(b"x" * (40 << 20)); time.sleep(60)`,
	"small frames":         `while True: put(head, b'"', b"x" * (60 << 10), b'"}}')`,
	"long done":            `put(b'{"type":"done","result":"', b"x" * (40 << 20), b'"}'); time.sleep(60)`,
	"lists":                `ask("list_tools", server="crowded")`,
	"descriptions":         `ask("describe_server", server="crowded")`,
	"documentation":        `ask("query_tool_docs", server="crowded", detail="full")`,
	"searches":             `ask("search_tool_docs", query="thing number many", limit=50, detail="full")`,
	"long searches":        `ask("search_tool_docs", n=20, query="thing " * 3_000_000)`,
	"signatures":           `ask("tool_signature", server="crowded", tool="tool_1")`,
	"pictures": `import base64
data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * (1 << 20)).decode()
ask("display", n=64, name="a", data=data)`,
	"pictures in large files": makePNG + `ask("display", n=2, name="a", data=png(8, 24 << 20))`,
	"pictures of some size":   makePNG + `ask("display", n=4, name="a", data=png(1900, 0))`,
	"the largest pictures":    makePNG + `ask("display", n=1, name="a", data=png(4096, 0))`,
	"saved tools": `for i in range(200): put(json.dumps({"type": "call", "id": i, "method": "save_tool", "params": {"name": f"t{i}", "source": "#" * 65_000}}).encode())
ask("export_tools", n=200)`,
	"lines": `import sys
for _ in range(3): os.write(1, b"x" + b"\n" * 500_000); os.write(2, b"x" + b"\n" * 500_000)`,
	"control characters": `os.write(1, b"\x01" * 600_000); os.write(2, b"\x01" * 600_000)`,
}

// TestHostileCodeLeavesTheHostItsMemory: whatever fifteen runs at once do, toolcell
// stays below 384 MiB, the runs end in time, and another run is answered meanwhile.
// Most often it is below 300; how much garbage there is depends on the machine.
func TestHostileCodeLeavesTheHostItsMemory(t *testing.T) {
	const limit, most = 2, 384
	c := firstHost(t).serveCrowded(t)
	for name, code := range greed {
		t.Run(name, func(t *testing.T) {
			peak := c.peakMemory(t)
			begun := time.Now()
			neighbors := c.besideHostile(t, code, 15, limit)
			took := time.Since(begun)
			t.Logf("%d MiB at most; all ended after %.1f s; %d neighbors, the slowest after %s", peak(), took.Seconds(), len(neighbors), slices.Max(neighbors))
			if peak() > most {
				t.Errorf("toolcell took %d MiB, more than %d", peak(), most)
			}
			if took > slow(60*time.Second) {
				t.Errorf("runs of %d s took %s", limit, took)
			}
		})
	}
}

// serveCrowded serves with one upstream that has as many tools as there may be.
func (h *host) serveCrowded(t *testing.T) *client {
	t.Helper()
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(h.home, "hostile-state") // what hostile code saves is not to be seen by other tests
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": state, "TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"crowded": map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: "crowded"}},
	}})})
	c.python(t, "from mcp import runtime\nprint(len(await runtime.search_tool_docs('a thing')), len(await runtime.list_tools('crowded')))").want(t, "5 20000")
	return c
}

// besideHostile has several runs of hostile code go on at once, for at most limit
// seconds, and returns how long the runs of a neighbor took meanwhile.
func (c *client) besideHostile(t *testing.T, code string, runs, limit int) (neighbors []time.Duration) {
	t.Helper()
	var hostile sync.WaitGroup
	for range runs {
		hostile.Go(func() { c.call(t, map[string]any{"code": greedy + code, "timeout": limit}) })
	}
	ended := make(chan struct{})
	go func() { hostile.Wait(); close(ended) }()
	for {
		at := time.Now()
		c.python(t, "from mcp import runtime\nprint(len(runtime.discovered_servers()))").want(t, "1")
		neighbors = append(neighbors, time.Since(at))
		select {
		case <-ended:
			return neighbors
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// peakMemory starts to measure the memory of toolcell. peak returns the most that it
// has used since, in MiB.
func (c *client) peakMemory(t *testing.T) (peak func() int) {
	t.Helper()
	at := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	if err := os.WriteFile(at+"clear_refs", []byte("5"), 0); err != nil { // proc_pid_clear_refs(5)
		t.Fatal(err)
	}
	return func() int {
		status, err := os.ReadFile(at + "status")
		if err != nil {
			t.Fatal(err)
		}
		return statusNumber(status, "VmHWM") >> 10
	}
}
