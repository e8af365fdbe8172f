package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestConformanceOfAsking runs the scenarios of the official suite in which a server
// asks the user. docs/conformance.md has all of them, with the program as the client.
func TestConformanceOfAsking(t *testing.T) {
	bin := filepath.Join(os.Getenv("TOOLCELL_TEST_NPM"), "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "conformance")); err != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm, then make test")
	}
	client, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"sep-2322-client-request-state", "elicitation-sep1034-client-defaults"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node"), filepath.Join(bin, "conformance"), "client",
				"--scenario", scenario, "--command", client, "--timeout", "60000")
			cmd.Env = append(os.Environ(), "FAKE_SERVER=conformance")
			cmd.Dir = t.TempDir()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// conformanceClient calls all tools of the server that the suite has started, for a user
// who leaves every form as it is.
func conformanceClient() error {
	s := config.Server{Name: "conf", Alias: "conf", Transport: config.HTTP, URL: os.Args[len(os.Args)-1], Source: "test.json"}
	p := New(config.Config{Servers: []config.Server{s}}, Options{})
	defer p.Close()
	p.SetElicits(ElicitCapabilities{Form: true})
	tools, err := p.Tools(context.Background(), "conf")
	if err != nil {
		return err
	}
	for _, tool := range tools {
		_, err := p.Call(context.Background(), CallRequest{
			Server: "conf", Tool: tool.Name, Elicits: ElicitCapabilities{Form: true},
			Elicit: func(_ context.Context, e Elicitation) (ElicitationReply, error) {
				return ElicitationReply{Action: "accept", Content: defaults(e.Schema)}, nil
			},
		})
		if err != nil {
			return fmt.Errorf("calling %s: %w", tool.Name, err)
		}
	}
	return nil
}

// defaults returns what a form has in it before it is filled in.
func defaults(schema json.RawMessage) json.RawMessage {
	var form struct {
		Properties map[string]struct{ Default json.RawMessage }
	}
	entered := map[string]json.RawMessage{}
	if err := json.Unmarshal(schema, &form); err != nil {
		return nil
	}
	for name, field := range form.Properties {
		if field.Default != nil {
			entered[name] = field.Default
		}
	}
	raw, _ := json.Marshal(entered)
	return raw
}
