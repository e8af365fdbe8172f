package installer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// TestCheckNamesTheFirstUnknownClient, as wrong usage.
func TestCheckNamesTheFirstUnknownClient(t *testing.T) {
	o := Options{Discovery: clientconfig.Options{Home: t.TempDir(), Dir: t.TempDir()}}
	if err := Check(o, "cursor", "codex"); err != nil {
		t.Error(err)
	}
	err := Check(o, "cursor", "cursr", "other")
	exit, ok := errors.AsType[*console.ExitError](err)
	if !ok || exit.Code != console.ExitUsage || !strings.Contains(err.Error(), `"cursr"; did you mean cursor?`) {
		t.Errorf("got %v", err)
	}
}

// TestToolsAreCountedAsClientsSendThem: < would cost more as an escape.
func TestToolsAreCountedAsClientsSendThem(t *testing.T) {
	text, err := ToolText(catalog.Tool{Name: "add", Description: "a < b", InputSchema: json.RawMessage(`{"type":"object"}`)})
	if want := `{"name":"add","description":"a < b","inputSchema":{"type":"object"}}`; err != nil || text != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	for text, want := range map[string]int{"": 0, "two words": 2, "{}": 1, `{"a": 1}`: 4} {
		if got := EstimateTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

func TestReadOnlyFilesAreLeftAloneUnlessForced(t *testing.T) {
	path := t.TempDir() + "/config.json"
	writeFile(t, path, "old", 0o400)
	i := &Installer{}
	f := edited(t, path, "new")
	if err := i.checkWritable(nil, f); err == nil || !strings.Contains(err.Error(), "is read-only (mode 0400)") {
		t.Errorf("got %v", err)
	}
	if i.Force = true; i.checkWritable(f) != nil {
		t.Error("it is refused with force")
	}
	if i.Force = false; i.checkWritable(edited(t, path, "old")) != nil {
		t.Error("a file that does not change is refused")
	}
}

func TestClientsOfAnEmptyHomeHaveNoFiles(t *testing.T) {
	rows := Clients(clientconfig.Options{Home: t.TempDir(), Dir: t.TempDir()})
	if len(rows) != len(edit.Targets(clientconfig.Options{Home: "/", Dir: "/"})) {
		t.Errorf("%d clients", len(rows))
	}
	for _, row := range rows {
		if row.Status != "no file" || row.Servers != 0 || row.Error != "" {
			t.Errorf("%+v", row)
		}
	}
}
