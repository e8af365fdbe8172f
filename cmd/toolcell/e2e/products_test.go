//go:build products

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// product finds a program that make test-products has installed.
func product(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("TOOLCELL_TEST_PRODUCTS"), "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("make test-products installs it: %v", err)
	}
	return path
}

// claudeCode is Claude Code.
var claudeCode = &agent{
	program: "claude", shell: "Bash", command: "command",
	setUp: func(t *testing.T, home string, entry object, _ string) {
		putJSON(t, filepath.Join(home, "mcp.json"), object{"mcpServers": object{"toolcell": with(entry, object{"alwaysLoad": true})}})
		putJSON(t, filepath.Join(home, ".claude.json"), object{
			"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": object{"approved": []string{"none"}},
			"projects": object{home: object{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
		})
	},
	args: []string{"--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__toolcell__run_python,Bash", "-p", "go on"},
	env: env{
		"ANTHROPIC_BASE_URL": "MODEL", "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
	},
	revision: "2026-07-28", elicitation: `{"form":{},"url":{}}`,
}

// openCode is OpenCode.
var openCode = &agent{
	program: "opencode", shell: "bash", command: "command",
	setUp: func(t *testing.T, home string, entry object, model string) {
		putJSON(t, filepath.Join(home, "opencode.json"), object{
			"autoupdate": false, "share": "disabled", "model": "fake/fake", "small_model": "fake/fake",
			"provider": object{"fake": object{
				"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": model + "/v1", "apiKey": "none"},
				"models": object{"fake": object{"tool_call": true}},
			}},
			"mcp": object{"toolcell": object{
				"type": "local", "enabled": true, "environment": entry["env"],
				"command": append([]string{entry["command"].(string)}, entry["args"].([]string)...),
			}},
			"permission": object{"*": "allow"},
		})
	},
	args: []string{"run", "go on"}, revision: "2025-11-25",
	env: env{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
}

func TestProductsComeBackAfterTheApproval(t *testing.T) {
	for _, a := range []*agent{claudeCode, openCode} {
		t.Run(a.program, func(t *testing.T) { a.testComesBack(t, product(t, a.program)) })
	}
}
