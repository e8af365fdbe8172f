package mcpproxy

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestSignatureOfARunningServer(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	tool, s, err := p.Signature(t.Context(), "fake", "get_pid", false)
	if err != nil || tool.Name != "get-pid" {
		t.Fatalf("%+v, %v", tool, err)
	}
	_, again, err := p.Signature(t.Context(), "fake", tool.Name, true)
	if err != nil || again != s {
		t.Errorf("the signature was made twice; %v", err)
	}
	_, _, err = p.Signature(t.Context(), "fake", "get_pidd", false)
	mcptest.WantError(t, err, "nearest", "get-pid")
	_, _, err = p.Signature(t.Context(), "fak", "x", false)
	mcptest.WantError(t, err, `"fake"`)
	stubs, err := p.Stubs(t.Context(), "fake", []string{"get_pid"})
	if err != nil || !strings.Contains(stubs, "async def get_pid(") || strings.Count(stubs, "async def") != 1 {
		t.Errorf("%s, %v", stubs, err)
	}
	if all, err := p.Stubs(t.Context(), "fake", nil); err != nil || strings.Count(all, "async def") < 2 {
		t.Errorf("%s, %v", all, err)
	}
	_, err = p.Stubs(t.Context(), "fake", []string{"nope"})
	mcptest.WantError(t, err, "nearest")
}
