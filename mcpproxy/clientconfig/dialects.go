package clientconfig

import (
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A Dialect describes the config files of one MCP client: where they are, what their fields
// are called, and how variables look. The zero value of a field is what most clients use.
type Dialect struct {
	Client  string
	User    []string // files; EDITOR/ is the user folder of each editor, /* all files in a folder, /*.json some
	Project []string // the same, in the project directory
	Content string   // a variable that holds a whole file
	moved   string   // the name of MovedFile, where it is not the client's

	Keys     []string // where the servers are; all that are there count, unless a/b is within a
	settings bool     // the file is of all kinds of settings: it need not have servers
	Projects bool     // and has servers of single directories under "projects"
	guess    bool     // it may be in any dialect, which its key tells

	syntax   syntax
	bare     config.Transport // what a URL without a type is; Remote unless set
	Fields   fieldNames
	timeouts []timeoutField
	allowAll bool // an empty list of allowed tools allows all

	// own are types of server that are part of the client itself.
	own map[string]bool
}

// fieldNames are the names that the fields of an entry have, where they differ
// from the usual ones. The first that is there counts.
type fieldNames struct {
	Command, Env, url, headers, allow, deny, envFile, passedEnv []string

	CommandList   bool // "command" is a list with the arguments in it
	commandObject bool // "command" may be an object of path, args and env
}

// A timeoutField is a number in an entry.
type timeoutField struct {
	key  string // a.b is within an object
	unit time.Duration
	call bool // bounds a call; otherwise the start
}

// codeSettings are the variables of VS Code and the editors made from it.
const codeSettings = envColon | folders | fileRefs

// The dialects.
var (
	// ClaudeProject is the file that most clients share by now.
	ClaudeProject = Dialect{
		Client: "claude", Project: []string{".mcp.json"}, Keys: mcpServers,
		syntax: braces | defaults, timeouts: millis,
	}

	// Claude is the dialect of Claude Code's own file.
	Claude = Dialect{
		Client: "claude", User: []string{"${CLAUDE_CONFIG_DIR:-~}/.claude.json"},
		Keys: mcpServers, settings: true, Projects: true, syntax: braces | defaults, timeouts: millis,
	}

	// Generic is for files that belong to no client: they are in the dialect that
	// their key tells, and in Claude's with what others add to it if it is
	// mcpServers, which most of them share.
	Generic = Dialect{
		Client: "", guess: true, Keys: []string{"mcpServers", "servers"},
		syntax: braces | defaults | codeSettings | inputRefs,
		Fields: fieldNames{
			url: []string{"url", "serverUrl"}, envFile: []string{"envFile"},
			deny: []string{"disabledTools", "disabled_tools", "excludeTools"}, allow: []string{"enabledTools", "enabled_tools", "includeTools"},
		},
	}

	// Dialects are all of them, in the order in which the files of the user's
	// clients count.
	Dialects = []*Dialect{
		&ClaudeProject,
		&Claude,
		{
			Client: "shared", Project: []string{".agents/mcp.json"},
			User: []string{"${XDG_CONFIG_HOME:-~/.config}/mcp/mcp.json", "${XDG_CONFIG_HOME:-~/.config}/mcp/servers/*"},
			Keys: Generic.Keys, syntax: Generic.syntax, Fields: Generic.Fields,
		},
		{
			Client: "claude-desktop",
			User: []string{
				"${XDG_CONFIG_HOME:-~/.config}/Claude/claude_desktop_config.json",
				"${XDG_CONFIG_HOME:-~/.config}/claude/claude_desktop_config.json",
			},
			Keys: mcpServers, settings: true, syntax: braces | defaults,
		},
		{
			Client: "cursor", Project: []string{".cursor/mcp.json"}, User: []string{"~/.cursor/mcp.json"},
			Keys: mcpServers, syntax: codeSettings, Fields: fieldNames{envFile: []string{"envFile"}},
		},
		{
			Client: "vscode", Project: []string{".vscode/mcp.json"}, User: []string{"EDITOR/mcp.json"},
			Keys: []string{"servers"}, settings: true, // a file with inputs alone is in order
			syntax: codeSettings | inputRefs, Fields: fieldNames{envFile: []string{"envFile"}},
		},
		{
			// Where VS Code before 1.102 had its servers, and Amp's extension has its own
			// (ampcode.com/manual#mcp).
			Client: "vscode", Project: []string{".vscode/settings.json"}, User: []string{"EDITOR/settings.json"},
			Keys: []string{"mcp/servers", "amp.mcpServers"}, settings: true, moved: "vscode-settings",
			syntax: codeSettings | inputRefs | braces,
			Fields: fieldNames{envFile: []string{"envFile"}, allow: []string{"includeTools"}},
		},
		{
			Client: "codex", Project: []string{".codex/config.toml"}, User: []string{"${CODEX_HOME:-~/.codex}/config.toml"},
			Keys: []string{"mcp_servers"}, settings: true,
			bare: config.HTTP, // Codex has no SSE
			Fields: fieldNames{
				headers: []string{"http_headers"}, allow: []string{"enabled_tools"}, deny: []string{"disabled_tools"},
				passedEnv: []string{"env_vars"},
			},
			timeouts: []timeoutField{{"tool_timeout_sec", time.Second, true}},
		},
		{
			Client: "gemini", Project: []string{".gemini/settings.json"}, User: []string{"~/.gemini/settings.json"},
			Keys: mcpServers, settings: true, syntax: braces | defaults | dollar,
			bare:   config.SSE, // and httpUrl is streamable HTTP
			Fields: fieldNames{allow: []string{"includeTools"}, deny: []string{"excludeTools"}}, timeouts: millis,
		},
		{
			// A fork of Gemini CLI (qwenlm.github.io/qwen-code-docs/en/users/features/mcp).
			Client: "qwen", Project: []string{".qwen/settings.local.json", ".qwen/settings.json"}, User: []string{"~/.qwen/settings.json"},
			Keys: mcpServers, settings: true, syntax: braces | defaults | dollar,
			bare:   config.SSE, // and httpUrl is streamable HTTP
			Fields: fieldNames{allow: []string{"includeTools"}, deny: []string{"excludeTools"}}, timeouts: millis,
		},
		{
			// The first file is of version 2, the others are of those before it
			// (antigravity.google/docs/mcp).
			Client: "antigravity", Project: []string{".agents/mcp_config.json"},
			User: []string{
				"~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json", "~/.gemini/antigravity-cli/mcp_config.json",
			},
			Keys: mcpServers, settings: true, // it makes the file empty
			syntax: braces | defaults | dollar | envColon,
			Fields: fieldNames{url: []string{"serverUrl", "url"}, deny: []string{"disabledTools"}},
		},
		{
			// The table of settings is at ampcode.com/manual#configuration.
			Client: "amp", Project: []string{".amp/settings.json", ".amp/settings.jsonc"},
			User: []string{
				"${AMP_SETTINGS_FILE}",
				"${XDG_CONFIG_HOME:-~/.config}/amp/settings.json", "${XDG_CONFIG_HOME:-~/.config}/amp/settings.jsonc",
			},
			Keys: []string{"amp.mcpServers"}, settings: true, syntax: braces | defaults,
			Fields: fieldNames{allow: []string{"includeTools"}},
		},
		{
			Client: "opencode",
			Project: []string{
				"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc",
			},
			User: []string{
				"${OPENCODE_CONFIG}",
				"${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json", "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.jsonc",
				"${XDG_CONFIG_HOME:-~/.config}/opencode/config.json",
			},
			Content: "OPENCODE_CONFIG_CONTENT", Keys: []string{"mcp/servers", "mcp"}, settings: true, syntax: curly,
			Fields: fieldNames{CommandList: true, Env: []string{"environment"}},
			timeouts: []timeoutField{
				{"timeout", time.Millisecond, false}, {"timeout.startup", time.Millisecond, false}, {"timeout.request", time.Millisecond, true},
			},
		},
		{
			Client: "windsurf", User: []string{"~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json"},
			Keys: mcpServers, syntax: envColon | fileRefs,
			Fields: fieldNames{url: []string{"serverUrl", "url"}, deny: []string{"disabledTools"}},
		},
		{
			Client: "copilot",
			User: []string{
				"${COPILOT_HOME:-~/.copilot}/mcp-config.json",
				"${XDG_CONFIG_HOME}/copilot/mcp-config.json", "${XDG_CONFIG_HOME}/.copilot/mcp-config.json",
			},
			Keys: mcpServers, syntax: braces | defaults | dollar | envColon,
			Fields: fieldNames{allow: []string{"tools"}}, timeouts: millis,
		},
		{
			Client: "zed", Project: []string{".zed/settings.json"}, User: []string{"${XDG_CONFIG_HOME:-~/.config}/zed/settings.json"},
			Keys: []string{"context_servers"}, settings: true, syntax: braces | defaults | envColon,
			Fields: fieldNames{commandObject: true}, own: map[string]bool{"extension": true},
		},
		{
			Client: "cline",
			User: []string{
				"${CLINE_MCP_SETTINGS_PATH}",
				"EDITOR/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
				"~/.cline/data/settings/cline_mcp_settings.json",
			},
			Keys: mcpServers, syntax: braces | defaults | codeSettings, timeouts: seconds,
		},
		{
			Client: "roo", Project: []string{".roo/mcp.json"},
			User:   []string{"EDITOR/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"},
			Keys:   mcpServers,
			syntax: braces | defaults | codeSettings, timeouts: seconds, Fields: fieldNames{deny: []string{"disabledTools"}},
		},
		{
			Client: "kilo", Project: []string{".kilocode/mcp.json"},
			User: []string{
				"~/.kilocode/cli/global/settings/mcp_settings.json",
				"EDITOR/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
			},
			Keys:   mcpServers,
			syntax: braces | defaults | codeSettings, timeouts: seconds, Fields: fieldNames{deny: []string{"disabledTools"}},
		},
		{
			Client: "continue", Project: []string{".continue/mcpServers/*"},
			User: []string{"~/.continue/config.yaml", "~/.continue/mcpServers/*"}, Keys: mcpServers, settings: true,
			syntax:   secretRefs | braces | defaults,
			timeouts: []timeoutField{{"connectionTimeout", time.Millisecond, false}},
		},
		{
			Client: "goose", User: []string{"${XDG_CONFIG_HOME:-~/.config}/goose/config.yaml"},
			Keys: []string{"extensions"}, settings: true, syntax: braces | defaults | dollar,
			Fields: fieldNames{
				Command: []string{"cmd"}, Env: []string{"envs"}, url: []string{"uri"}, passedEnv: []string{"env_keys"},
				allow: []string{"available_tools"},
			},
			allowAll: true, timeouts: seconds,
			own: map[string]bool{"builtin": true, "platform": true, "frontend": true, "inline_python": true},
		},
		{
			Client: "kiro", Project: []string{".kiro/settings/mcp.json"}, User: []string{"~/.kiro/settings/mcp.json"},
			Keys:   mcpServers,
			syntax: braces | defaults | envColon, Fields: fieldNames{deny: []string{"disabledTools"}},
			timeouts: millis,
		},
		{
			Client: "crush", Project: []string{"crush.json", ".crush.json"},
			User: []string{"${XDG_CONFIG_HOME:-~/.config}/crush/crush.json"}, Keys: []string{"mcp"}, settings: true,
			syntax: braces | defaults | dollar | commands, Fields: fieldNames{deny: []string{"disabled_tools"}, allow: []string{"enabled_tools"}},
			timeouts: []timeoutField{{"timeout", time.Second, false}},
		},
		{
			Client: "lmstudio", User: []string{"~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"},
			Keys: mcpServers, syntax: braces | defaults | envColon,
		},
		{
			Client: "amazonq", Project: []string{".amazonq/mcp.json"}, User: []string{"~/.aws/amazonq/mcp.json"},
			Keys: mcpServers, syntax: braces | defaults | envColon, timeouts: millis,
		},
		{
			Client: "sema4", User: []string{"~/.sema4ai/sema4ai-studio/mcp_servers.json"}, Keys: mcpServers,
			syntax: braces | defaults,
		},
		{
			Client: "hermes", User: []string{"~/.hermes/config.yaml"}, Keys: []string{"mcp_servers"}, settings: true,
			syntax: braces | defaults,
		},
		{
			Client: "tabnine", Project: []string{".tabnine/agent/settings.json"}, User: []string{"~/.tabnine/agent/settings.json"},
			Keys: mcpServers, settings: true, syntax: braces | defaults | dollar,
			Fields: fieldNames{allow: []string{"includeTools"}, deny: []string{"excludeTools"}},
		},
		{
			// Where only the Python original looks: its CONFIG_DIRS, CLAUDE_CONFIG_PATHS
			// and OPENCODE_CONFIG_PATHS. mcp-servers may hold other files too.
			Client:  "mcp-server-code-execution-mode",
			Project: []string{"mcp-servers/*.json", "claude_code_config.json", "claude_desktop_config.json"},
			Keys:    mcpServers, settings: true, syntax: Generic.syntax, Fields: Generic.Fields,
		},
		{
			// It reads mcpServers in these, and OpenCode itself writes mcp.
			Client:  "mcp-server-code-execution-mode",
			Project: []string{"opencode_config.json", "opencode_desktop_config.json"},
			User:    []string{"~/.opencode.json"}, Keys: mcpServers, settings: true, guess: true,
			syntax: Generic.syntax, Fields: Generic.Fields,
		},
	}
)

// What most clients have: the key of their servers, and how long a call may take.
var (
	mcpServers = []string{"mcpServers"}
	millis     = []timeoutField{{"timeout", time.Millisecond, true}}
	seconds    = []timeoutField{{"timeout", time.Second, true}}
)

// OlderDialectOf returns the dialect of another file, beside the one that a client
// uses now, in which its earlier versions had servers; nil if there is none.
func OlderDialectOf(client string) *Dialect {
	for _, d := range Dialects {
		if d.Client == client && d.moved != "" {
			return d
		}
	}
	return nil
}

// DialectOf returns the dialect of a client, such as "cursor", or nil.
func DialectOf(client string) *Dialect {
	for _, d := range Dialects {
		if d.Client == client {
			return d
		}
	}
	panic("no dialect " + client + ": add it to dialects")
}

// guessed are the dialects of files that belong to no client, by their keys.
var guessed = []struct{ key, client string }{
	{"mcp_servers", "codex"}, {"context_servers", "zed"}, {"mcp/servers", "opencode"}, {"mcp", "opencode"}, {"extensions", "goose"},
}
