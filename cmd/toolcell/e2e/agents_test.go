package e2e

import (
	"path/filepath"
	"testing"
)

// geminiCLI is Gemini CLI, which declares no forms.
var geminiCLI = &agent{
	revision: "2025-06-18",
	program:  "gemini", shell: "run_shell_command", command: "command",
	setUp: func(t *testing.T, home string, entry object, _ string) {
		putJSON(t, filepath.Join(home, ".gemini/settings.json"), object{
			"mcpServers": object{"toolcell": with(entry, object{"trust": true})},
			"security":   object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
			"telemetry":  object{"enabled": false}, "privacy": object{"usageStatisticsEnabled": false},
			"general": object{"disableAutoUpdate": true, "disableUpdateNag": true},
		})
	},
	args: []string{"--yolo", "--model", "gemini-2.5-flash", "--prompt", "go on"},
	env:  env{"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "MODEL", "GEMINI_CLI_NO_RELAUNCH": "true", "CI": "1"},
}

func TestGeminiCLIComesBackAfterTheApproval(t *testing.T) {
	t.Parallel()
	geminiCLI.testComesBack(t, npmProgram(t, geminiCLI.program))
}
