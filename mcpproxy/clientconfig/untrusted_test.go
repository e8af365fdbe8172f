package clientconfig_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestFilesWithoutTrustListOnlyWhatCouldStart: the rest is left out for its own reason, so that
// nobody trusts a file for a server that would not start.
func TestFilesWithoutTrustListOnlyWhatCouldStart(t *testing.T) {
	o, _ := trusting(t, map[string]string{"project/.mcp.json": `{"mcpServers":{
		"good":{"command":"g"},"value":{"command":"v","args":["${NONE}"]},"broken":{"command":"b","args":"x"},
		"off":{"command":"o","disabled":true},"self":{"command":"toolcell"}}}`})
	found := func() string {
		c := clientconfig.Discover(o)
		var all []string
		for _, p := range c.Problems {
			reason, _, _ := strings.Cut(p.Reason, ";")
			all = append(all, p.Server+" "+p.Status+" "+reason)
		}
		for _, s := range c.Projects[0].Starts {
			all = append(all, s.Server+": "+s.Command)
		}
		return strings.Join(all, "\n")
	}
	const waits = " untrusted this project's file may not start commands yet\n"
	want := "good" + waits + "value" + waits + "broken skipped \"args\" is not a list\noff disabled disabled\n" +
		"self skipped this program itself\ngood: g\nvalue: v '${NONE}'"
	if got := found(); got != want {
		t.Errorf("found:\n%s\nwant:\n%s", got, want)
	}
	o.AllowSelf = true
	want = strings.Replace(want, "self skipped this program itself\n", "self"+waits, 1) + "\nself: toolcell"
	if got := found(); got != want {
		t.Errorf("with this program allowed:\n%s\nwant:\n%s", got, want)
	}
}

// TestProjectSaysWhichFileItsEntryWouldReplace: one of the user that is on.
func TestProjectSaysWhichFileItsEntryWouldReplace(t *testing.T) {
	o, _ := trusting(t, map[string]string{
		"project/named.json":       `{"mcpServers":{"named":{"command":"1"}}}`,
		"project/.mcp.json":        `{"mcpServers":{"named":{"command":"p"},"a":{"command":"p"},"off":{"command":"p"},"new":{"command":"p"}}}`,
		"project/.cursor/mcp.json": `{"mcpServers":{"b":{"command":"p"},"same":{"command":"u"},"same":{"command":"u","disabled":true}}}`,
		"home/.cursor/mcp.json": `{"mcpServers":{"a":{"command":"u"},"b":{"command":"u"},"same":{"command":"u"},
			"off":{"command":"u","disabled":true}}}`,
	})
	o.Extra = "named.json"
	got := map[string]string{}
	for _, p := range clientconfig.Discover(o).Projects {
		for _, s := range p.Starts {
			got[s.Server] = s.Replaces
		}
	}
	user := filepath.Join(o.Home, ".cursor/mcp.json")
	for name, want := range map[string]string{"named": "", "a": user, "b": user, "same": "", "off": "", "new": ""} {
		if replaces, ok := got[name]; !ok || replaces != want {
			t.Errorf("%s replaces %q of what the user has, want %q", name, replaces, want)
		}
	}
}

func TestForgottenFileIsAskedForAgain(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		trust := clientconfig.NewTrust(t.TempDir())
		for _, file := range []string{"/f", "/other"} {
			if err := trust.Set(file, "1", trusted); err != nil {
				t.Fatal(err)
			}
		}
		before := trust.State("/other", "1")
		if was, err := trust.Forget("/f"); was != trusted || err != nil {
			t.Errorf("forgetting one with trust %v: %v, %v", trusted, was, err)
		}
		if trust.State("/f", "1") != clientconfig.Untrusted || trust.State("/other", "1") != before {
			t.Errorf("with trust %v: it is %v, the other %v", trusted, trust.State("/f", "1"), trust.State("/other", "1"))
		}
		if was, err := trust.Forget("/f"); was || err != nil {
			t.Errorf("forgetting it again: %v, %v", was, err)
		}
	}
	broken := clientconfig.NewTrust(t.TempDir())
	mcptest.WriteFile(t, broken.File(), "{")
	if _, err := broken.Forget("/f"); err == nil {
		t.Error("a record that cannot be read is changed")
	}
}
