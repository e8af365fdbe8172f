package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFaultsOfTheBinary lets a binary that is built for it panic at boundaries that real
// sandboxes have. It goes on, a session stays, and stacks are in its log alone.
func TestFaultsOfTheBinary(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	faulty := filepath.Join(t.TempDir(), "toolcell")
	build := exec.Command("go", "build", "-tags", buildTags()+",faults", "-ldflags", "-s -w -extldflags -static", "-o", faulty, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	points := []string{
		"starting a sandbox", "pool: locked", "forking a sandbox", "starting a template", "supervising a sandbox", "waiting for a sandbox",
		"limits: looking", "waiting for the first process of a sandbox", "removing a sandbox", "carrying out a call of code", "running code",
		"replying to a call of code", "reading what the code sends", "reading the output of code",
	}
	cmd := h.command(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_TEST_FAULTS": strings.Join(points, ";")}, "serve")
	for i, arg := range cmd.Args {
		if arg == bin {
			cmd.Args[i] = faulty
		}
	}
	if cmd.Path == bin {
		cmd.Path = faulty
	}
	if err := os.Chmod(filepath.Dir(faulty), 0o755); err != nil {
		t.Fatal(err)
	}
	c := connect(t, cmd)
	failed := 0
	for range 2 * len(points) { // each fault ends one run at most
		res := c.tryPython(t, "from mcp import runtime\nawait runtime.search_tool_docs('x')\nprint(0)")
		if strings.Contains(res, "goroutine") || strings.Contains(res, ".go:") {
			t.Errorf("a stack in a result: %s", res)
		}
		if res != "0" {
			failed++
		}
	}
	if failed > len(points) {
		t.Errorf("%d runs failed of %d faults", failed, len(points))
	}
	c.python(t, "print(1)").want(t, "1")
	log := c.stderr.String()
	if n := strings.Count(log, "internal error"); n < 5 || !strings.Contains(log, "goroutine") {
		t.Errorf("%d internal errors in the log", n)
	}
	for _, point := range []string{"running code", "carrying out a call of code"} {
		if !strings.Contains(log, `panic="`+point) {
			t.Errorf("%s: it was not passed, or is not in the log", point)
		}
	}
}

// tryPython runs code and returns what came: the text of a result, or an error.
func (c *client) tryPython(t *testing.T, code string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow(3*time.Minute))
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code}})
	if err != nil {
		return err.Error()
	}
	return res.Content[0].(*mcp.TextContent).Text
}
