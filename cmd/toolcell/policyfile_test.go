package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestAMisspelledSectionIsLogged, since it protects nothing. One that is about no server
// here may be about a server of another project.
func TestAMisspelledSectionIsLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.taks]\ndeny = [\"add\"]\n[servers.elsewhere]\ndeny = [\"add\"]\n[servers.bank]\ndeny = [\"pay\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	warnOfSections(log, policy.Load(file, true, log), []config.Server{{Name: "tasks", Alias: "tasks"}, {Name: "bank", Alias: "bank"}})
	if got := out.String(); !strings.Contains(got, "section=[servers.taks] meant=tasks") || strings.Contains(got, "elsewhere") || strings.Contains(got, "bank") {
		t.Errorf("the log has %q", got)
	}
	out.Reset()
	if warnOfSections(log, nil, nil); out.Len() > 0 {
		t.Errorf("without a policy the log has %q", out.String())
	}
}
