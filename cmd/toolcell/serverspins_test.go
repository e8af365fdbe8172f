package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// pinTools has a server define its tools, as JSON.
func pinTools(t *testing.T, store pins.Store, s config.Server, tools ...string) {
	t.Helper()
	var all []pins.Definition
	for _, tool := range tools {
		d, err := pins.Define(json.RawMessage(tool))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if _, err := store.Record(pins.Key(s), s.Name, nil, all); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorNamesServersWithOtherTools(t *testing.T) {
	store := pins.Store{Dir: t.TempDir()}
	server := func(name string) config.Server { return config.Server{Name: name, Command: "x"} }
	pinTools(t, store, server("same"), `{"name":"a"}`)
	pinTools(t, store, server("changed"), `{"name":"a"}`, `{"name":"b"}`)
	pinTools(t, store, server("changed"), `{"name":"a","title":"A"}`, `{"name":"c"}`)
	pinTools(t, store, server("hides"), `{"name":"a","description":"\u200b"}`)
	if err := os.WriteFile(store.File(pins.Key(server("damaged"))), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range checkServerPins([]config.Server{server("same"), server("changed"), server("hides"), server("damaged"), server("unknown")}, store) {
		got = append(got, fmt.Sprintf("%s %s\n%s", c.Code, c.Text, c.Cure))
	}
	for i, want := range [][]string{
		{"RC-SERVER-PINS", `server "changed" has other tools than those pinned on `, ", 1 changed, 1 added, 1 removed\n", "\ntoolcell servers pins changed"},
		{"RC-SERVER-HIDDEN", `server "hides" defines 1 tool with hidden characters`, "\ntoolcell servers pins hides"},
		{"RC-SERVER-PINS", `server "damaged" are not noticed: reading ` + store.Dir, "\nrm " + store.Dir},
	} {
		for _, part := range want {
			if len(got) != 3 || !strings.Contains(got[i], part) {
				t.Errorf("want %q in %q", part, got)
			}
		}
	}
}

// TestPinsOfThousandsOfToolsAreBounded where they are shown.
//
//test:alone
func TestPinsOfThousandsOfToolsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes thousands of tools")
	}
	store := pins.Store{Dir: t.TempDir()}
	s := config.Server{Name: "s", Command: "x"}
	define := func(description string) (tools []string) {
		for i := range 5000 {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, description))
		}
		return tools
	}
	pinTools(t, store, s, define("A")...)
	pinTools(t, store, s, define(strings.Repeat("B\u202e\n", 1000))...)
	pinned, err := store.Read(pins.Key(s))
	if err != nil {
		t.Fatal(err)
	}
	if got := pinRemark("s", pinned); len(got) > 200 || !strings.HasPrefix(got, "tools: 5000 changed since ") || !strings.Contains(got, "; 5000 tools with hidden characters: toolcell servers pins s") {
		t.Errorf("remark: %s", got)
	}
	row := newPinRow("s", pinned)
	for _, change := range row.Changes {
		for _, d := range change.Differences {
			if len(d.Diff) > 64<<10 || strings.ContainsRune(d.Diff, '\u202e') {
				t.Fatalf("%s: %d bytes", change.Tool, len(d.Diff))
			}
		}
	}
}
