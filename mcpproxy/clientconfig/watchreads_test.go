package clientconfig_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestFilesAreReadOnceUnlessTheyChangeMeanwhile. A file of the project is asked for each time
// that it is read.
func TestFilesAreReadOnceUnlessTheyChangeMeanwhile(t *testing.T) {
	for changes, reads := range map[int]int{0: 1, 1: 2, 3: 4, 100: 5} {
		o := mcptest.Site(t, map[string]string{"project/.mcp.json": `{"mcpServers":{"a":{"command":"0"}}}`})
		asked := 0
		o.Trusted = func(string, string) clientconfig.TrustState {
			asked++
			if asked <= changes { // longer each time, so that it shows
				mcptest.WriteFile(t, filepath.Join(o.Dir, ".mcp.json"), fmt.Sprintf(`{"mcpServers":{"a":{"command":"%0*d"}}}`, asked+1, asked))
			}
			return clientconfig.Trusted
		}
		c := clientconfig.Watch(o).Config()
		if asked != reads {
			t.Errorf("with %d changes it is read %d times, want %d", changes, asked, reads)
		}
		if want := fmt.Sprintf("a=%0*d", changes+1, changes); changes < reads && names(c) != want {
			t.Errorf("after %d changes: %s, want %s", changes, names(c), want)
		}
	}
}

// TestRefreshReadsNothingAgainForAFolderAlone: other files come and go beside the user's. A
// variable stands for a change of the file that does not show.
func TestRefreshReadsNothingAgainForAFolderAlone(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/.claude.json": `{"mcpServers":{"a":{"command":"${X}"}}}`})
	x := "1"
	o.Getenv = func(string) string { return x }
	w, refresh := watched(t, o)
	w.Settle()
	x = "2"
	mcptest.WriteFile(t, filepath.Join(o.Home, "other.txt"), "")
	if got := refresh(); got != "" {
		t.Errorf("it was read again: %s", got)
	}
}

// TestRefreshWithoutFilesReadsNothingAgain: what is in a variable does not change.
func TestRefreshWithoutFilesReadsNothingAgain(t *testing.T) {
	o := mcptest.Site(t, nil)
	text := `{"mcp":{"a":{"type":"local","command":["x"]}}}`
	o.Getenv = func(name string) string {
		if name == "OPENCODE_CONFIG_CONTENT" {
			return text
		}
		return ""
	}
	w, refresh := watched(t, o)
	if got := names(w.Config()); got != "a=x" {
		t.Fatalf("servers = %s", got)
	}
	text = `{}`
	if got := refresh(); got != "" || names(w.Config()) != "a=x" {
		t.Errorf("it was read again: %s", names(w.Config()))
	}
	if _, looks := w.Looks(); looks != 2 {
		t.Errorf("%d are looked at, want the home and the project, in which files may appear", looks)
	}
}

// TestRefreshOfSettledFilesLeavesThemSettled: it is over after a look at each.
func TestRefreshOfSettledFilesLeavesThemSettled(t *testing.T) {
	o := mcptest.Site(t, map[string]string{"home/MCPs/a.json": `{"command":"1"}`})
	w, refresh := watched(t, o)
	w.Settle()
	if got := refresh(); got != "" {
		t.Errorf("a change that is none: %s", got)
	}
	if settled, _ := w.Looks(); !settled {
		t.Error("everything was looked for anew")
	}
}

// TestChangeBesideManyOtherFilesIsSeen: a folder of config files may hold others too.
func TestChangeBesideManyOtherFilesIsSeen(t *testing.T) {
	files := map[string]string{"home/MCPs/z.json": `{"command":"1"}`}
	for i := range 1001 {
		files[fmt.Sprintf("home/MCPs/a%04d.txt", i)] = ""
	}
	o := mcptest.Site(t, files)
	w, refresh := watched(t, o)
	w.Settle()
	mcptest.WriteFile(t, filepath.Join(o.Home, "MCPs/z.json"), `{"command":"22"}`)
	if got := refresh(); got == "" {
		t.Error("the change is not seen")
	}
}
