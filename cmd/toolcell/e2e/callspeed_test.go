//go:build figures

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callCode times calls from inside: ms at the 50th percentile one after the
// other, calls a second with a hundred at once, and MB/s of large results.
const callCode = `
import asyncio, json, time

async def each(n):
    took = []
    for _ in range(n):
        start = time.perf_counter()
        await mcp_odd.pid()
        took.append(time.perf_counter() - start)
    return took

async def many(n):
    async def one():
        for _ in range(n):
            await mcp_odd.pid()
    start = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(100)])
    return 100 * n / (time.perf_counter() - start)

async def large(n):
    start = time.perf_counter()
    got = sum([len(await mcp_fast.large()) for _ in range(n)])
    return got / 1e6 / (time.perf_counter() - start)

await each(50)
`

// TestCallFigures measures what the way through the sandbox adds to a call of a
// warm stdio server, beside the SDK's client alone: docs/benchmarks/speed.md.
func TestCallFigures(t *testing.T) {
	h := firstHost(t)
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	config := fakeConfig(t, map[string]any{
		"odd":  map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: "odd"}},
		"fast": map[string]any{"command": exe, "env": map[string]string{fakeServerEnv: "fast"}},
	})
	c := h.serve(t, env{"TOOLCELL_IMAGE": firstImage(t), "TOOLCELL_SERVERS_CONFIG": config})
	direct, fast := directClient(t, exe, "odd"), directClient(t, exe, "fast")

	best := map[string]float64{}
	ratios := map[string][]float64{}
	for range 5 { // in turn: machines are noisy
		ours := c.figures(t, callCode+"print(json.dumps({'p50 ms': sorted(await each(500))[250] * 1000, 'a second': await many(20)}))")
		theirs := map[string]float64{"p50 ms": directEach(t, direct), "a second": directMany(t, direct)}
		large := c.figures(t, callCode+"print(json.dumps({'MB/s': await large(13)}))")
		ratios["ms added to a call"] = append(ratios["ms added to a call"], ours["p50 ms"]-theirs["p50 ms"])
		ratios["100 at once, part of the direct client's"] = append(ratios["100 at once, part of the direct client's"], ours["a second"]/theirs["a second"])
		ratios["MB/s of results"] = append(ratios["MB/s of results"], large["MB/s"])
		ratios["MB/s of results, direct client"] = append(ratios["MB/s of results, direct client"], directLarge(t, fast))
		t.Log(ours, theirs, large)
	}
	for name, all := range ratios {
		slices.Sort(all)
		best[name] = all[len(all)/2]
		t.Logf("%s: %.3g (of %.3g)", name, best[name], all)
	}
	if file := os.Getenv("TOOLCELL_FIGURES"); file != "" {
		b, err := json.Marshal(best)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// figures runs code that prints an object of numbers.
func (c *client) figures(t *testing.T, code string) (f map[string]float64) {
	t.Helper()
	r := c.call(t, map[string]any{"code": code, "servers": []string{"odd", "fast"}, "timeout": seconds(100)})
	if err := json.Unmarshal([]byte(strings.Join(lines(r.fields["stdout"]), "\n")), &f); err != nil {
		t.Fatalf("%v: %s", err, r.text)
	}
	return f
}

func directClient(t *testing.T, exe, name string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(exe)
	cmd.Env = []string{fakeServerEnv + "=" + name}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "direct"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// directCall returns the length of what a tool says.
func directCall(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) int {
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Error(err)
		return 0
	}
	return len(r.Content[0].(*mcp.TextContent).Text)
}

func directEach(t *testing.T, s *mcp.ClientSession) float64 {
	var took []time.Duration
	for range 550 {
		start := time.Now()
		directCall(t, s, "pid", map[string]any{})
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return float64(took[275]) / 1e6
}

func directMany(t *testing.T, s *mcp.ClientSession) float64 {
	start := time.Now()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 20 {
				directCall(t, s, "pid", map[string]any{})
			}
		})
	}
	all.Wait()
	return 2000 / time.Since(start).Seconds()
}

func directLarge(t *testing.T, s *mcp.ClientSession) float64 {
	start, got := time.Now(), 0
	for range 13 {
		got += directCall(t, s, "large", map[string]any{})
	}
	return float64(got) / 1e6 / time.Since(start).Seconds()
}

// firstImage is a real one if there is one.
func firstImage(t *testing.T) string {
	t.Helper()
	_, v := pythons()
	if dir := os.Getenv("TOOLCELL_TEST_IMAGES"); dir != "" {
		return fmt.Sprintf("oci:%s/python-%s", dir, v)
	}
	return "host"
}
