package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

const ctrlC = "\x03"

// TestLongWorkHasOneLine at a terminal, which is gone when the user gives up.
func TestLongWorkHasOneLine(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	registry, err := net.Listen("tcp", "127.0.0.1:0") // that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	silent := writeConfig(t, map[string]any{"mcpServers": map[string]any{"silent": map[string]any{"command": "sleep", "args": []string{"1000"}}}})
	image := registry.Addr().String() + "/python:1"
	for _, tt := range []struct {
		args []string
		line string
	}{
		{[]string{"exec", "--image", image, "-c", "1"}, "looking up " + image},
		{[]string{"images", "pull", image}, "looking up " + image},
		{[]string{"servers", "check"}, "0 of 1 servers checked; waiting for silent"},
		{[]string{"servers", "tools"}, "asking silent for its tools (server 1 of 1)"},
		{[]string{"servers", "search", "anything"}, "asking 1 server for tools"},
		{[]string{"servers", "call", "silent", "x"}, "calling silent/x"},
	} {
		e := h.ownState(t)
		e["TOOLCELL_SERVERS_CONFIG"], e["TERM"] = silent, "xterm"
		p := atTerminal(t, h.command(t, e, tt.args...), 100)
		p.sees(tt.line)
		before := len(p.screen.String())
		p.enters(ctrlC, "\r\x1b[J")
		if code := p.leaves(); code != 130 {
			t.Errorf("%v: exit %d", tt.args, code)
		}
		if rest := p.screen.String()[before:]; strings.HasSuffix(rest, tt.line) {
			t.Errorf("%v: the line is there at the end: %q", tt.args, rest)
		}
		if tt.args[0] == "images" && !strings.Contains(p.screen.String(), "toolcell: cancelled; nothing was kept") {
			t.Errorf("%v: %q", tt.args, p.screen)
		}
	}
}

// TestCancelledPull says what it leaves behind: nothing of a layer that is not whole.
func TestCancelledPull(t *testing.T) {
	_, v := pythons()
	ref := "oci:" + rootfstest.Layout(t, v)
	h := firstHost(t)
	e := h.ownState(t)
	e["TERM"] = "xterm"
	p := atTerminal(t, h.command(t, e, "images", "pull", ref), 100)
	waitFor(t, "the pull to begin", func() bool {
		found, _ := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images/layers/.tmp-*/entries"))
		return len(found) > 0
	})
	p.types(ctrlC)
	p.leavesWith(130)
	p.sees("toolcell: cancelled; ")
	kept, _ := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache/images/layers/*/entries"))
	if none := strings.Contains(p.screen.String(), "nothing was kept"); none != (len(kept) == 0) {
		t.Errorf("%d layers are kept, and it says: %q", len(kept), p.screen)
	}
	if strings.Contains(p.screen.String(), " b ") || strings.Contains(p.screen.String(), " MB") {
		t.Errorf("other units: %q", p.screen)
	}
}
