package main

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rights"
)

// TestServersAreTrustedByNameOrAlias: what is accepted is kept by the name, and taken back by either.
func TestServersAreTrustedByNameOrAlias(t *testing.T) {
	const rules = "[servers.my-notes]\nsandbox = 'on'\nnetwork = ['example.com']\n"
	for _, typed := range []string{"my-notes", "my_notes"} {
		trusting := &trusting{
			servers: []config.Server{{Name: "my-notes", Alias: "my_notes", Transport: config.Stdio, Command: "notes", Source: "/f.json"}},
			rules:   policy.Parse([]byte(rules), "policy.toml").NewEnforcer(),
			store:   rights.Open(t.TempDir()),
		}
		row, _, err := trustServer(trusting, typed)
		if err != nil || !row.Changed || row.Server != "my-notes" {
			t.Errorf("trust %s: %+v, %v", typed, row, err)
		}
		row, said, err := untrustServer(trusting, typed)
		if err != nil || !row.Changed || row.Server != "my-notes" || !strings.Contains(said, "my-notes") {
			t.Errorf("untrust %s: %+v, %s, %v", typed, row, said, err)
		}
	}
}
