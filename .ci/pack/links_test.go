package main

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"testing"
)

// TestInstallLinksHaveTheEntry decodes the links as VS Code and Cursor do.
func TestInstallLinksHaveTheEntry(t *testing.T) {
	document, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"command": "uvx", "args": []any{"toolcell", "serve"}}
	for _, tt := range []struct {
		client, pattern string
		decode          func(string) ([]byte, error)
	}{
		{"VS Code", `\(https://insiders\.vscode\.dev/redirect/mcp/install\?([^)]*)\)`, func(s string) ([]byte, error) { return []byte(s), nil }},
		{"Cursor", `\(https://cursor\.com/en/install-mcp\?([^)]*)\)`, base64.StdEncoding.DecodeString},
	} {
		m := regexp.MustCompile(tt.pattern).FindSubmatch(document)
		if m == nil {
			t.Errorf("%s has no link", tt.client)
			continue
		}
		query, err := url.ParseQuery(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		config, err := tt.decode(query.Get("config"))
		if err != nil {
			t.Fatalf("%s: %v", tt.client, err)
		}
		var entry map[string]any
		if err := json.Unmarshal(config, &entry); err != nil {
			t.Fatalf("%s: %v", tt.client, err)
		}
		if query.Get("name") != "toolcell" || !reflect.DeepEqual(entry, want) {
			t.Errorf("%s adds %q: %s", tt.client, query.Get("name"), config)
		}
	}
}
