package mcpproxy

import (
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A dialect is how one MCP client writes its servers down: where, under which
// names, and what a variable looks like. The zero value of a field is what
// most clients do.
type dialect struct {
	client  string
	user    []string // files; EDITOR/ is the user folder of each editor, /* all files in a folder
	project []string // the same, in the project directory
	content string   // a variable that holds a whole file

	keys     []string // where the servers are; all that are there count, unless a.b is within a
	settings bool     // the file is of all kinds of settings: it need not have servers
	projects bool     // and has servers of single directories under "projects"
	guess    bool     // it may be in any dialect, which its key tells

	syntax   syntax
	bare     config.Transport // what a URL without a type is; Remote unless set
	fields   fields
	timeouts []timeoutField
	allowAll bool // an empty list of allowed tools allows all

	// own are types of server that are part of the client itself.
	own map[string]bool
}

// fields are the names that the fields of an entry have, where they differ
// from the usual ones. The first that is there counts.
type fields struct {
	command, env, url, headers, allow, deny, envFile, passedEnv []string

	commandList   bool // "command" is a list with the arguments in it
	commandObject bool // "command" may be an object of path, args and env
}

// A timeoutField is a number in an entry.
type timeoutField struct {
	key  string // a.b is within an object
	unit time.Duration
	call bool // bounds a call; otherwise the start
}

// codeSettings are what VS Code and the editors made from it put in values.
const codeSettings = envColon | folders | fileRefs

// claudeProject is the file that most clients share by now.
var claudeProject = dialect{
	client: "claude", project: []string{".mcp.json"},
	keys:   []string{"mcpServers"},
	syntax: braces | defaults, timeouts: claudeTimeouts,
}

var claude = dialect{
	client: "claude", user: []string{"${CLAUDE_CONFIG_DIR:-~}/.claude.json"},
	keys: []string{"mcpServers"}, settings: true, projects: true,
	syntax: braces | defaults, timeouts: claudeTimeouts,
}

var claudeTimeouts = []timeoutField{{"timeout", time.Millisecond, true}}

// generic is for files that belong to no client: they are in the dialect that
// their key tells, and in Claude's with what others add to it if it is
// mcpServers, which most of them share.
var generic = dialect{
	client: "", guess: true,
	keys:   []string{"mcpServers", "servers"},
	syntax: braces | defaults | codeSettings | inputRefs,
	fields: fields{
		url: []string{"url", "serverUrl"}, envFile: []string{"envFile"},
		deny: []string{"disabledTools", "disabled_tools", "excludeTools"}, allow: []string{"enabledTools", "enabled_tools", "includeTools"},
	},
}

// dialects are all of them, in the order in which the files of the user's
// clients count.
var dialects = []*dialect{
	&claudeProject,
	&claude,
	{
		client: "shared", project: []string{".agents/mcp.json"},
		user: []string{"${XDG_CONFIG_HOME:-~/.config}/mcp/mcp.json", "${XDG_CONFIG_HOME:-~/.config}/mcp/servers/*"},
		keys: generic.keys, syntax: generic.syntax, fields: generic.fields,
	},
	{
		client: "claude-desktop",
		user: []string{
			"${XDG_CONFIG_HOME:-~/.config}/Claude/claude_desktop_config.json",
			"${XDG_CONFIG_HOME:-~/.config}/claude/claude_desktop_config.json",
		},
		keys: []string{"mcpServers"}, settings: true,
		syntax: braces | defaults,
	},
	{
		client: "cursor", project: []string{".cursor/mcp.json"}, user: []string{"~/.cursor/mcp.json"},
		keys:   []string{"mcpServers"},
		syntax: codeSettings, fields: fields{envFile: []string{"envFile"}},
	},
	{
		client: "vscode", project: []string{".vscode/mcp.json"}, user: []string{"EDITOR/mcp.json"},
		keys: []string{"servers"}, settings: true, // a file with inputs alone is in order
		syntax: codeSettings | inputRefs, fields: fields{envFile: []string{"envFile"}},
	},
	{
		client: "codex", project: []string{".codex/config.toml"}, user: []string{"${CODEX_HOME:-~/.codex}/config.toml"},
		keys: []string{"mcp_servers"}, settings: true,
		bare: config.HTTP, // Codex has no SSE
		fields: fields{
			headers: []string{"http_headers"}, allow: []string{"enabled_tools"}, deny: []string{"disabled_tools"},
			passedEnv: []string{"env_vars"},
		},
		timeouts: []timeoutField{
			{"startup_timeout_sec", time.Second, false},
			{"startup_timeout_ms", time.Millisecond, false},
			{"tool_timeout_sec", time.Second, true},
		},
	},
	{
		client: "gemini", project: []string{".gemini/settings.json"}, user: []string{"~/.gemini/settings.json"},
		keys: []string{"mcpServers"}, settings: true,
		syntax: braces | defaults | dollar,
		bare:   config.SSE, // and httpUrl is streamable HTTP
		fields: fields{allow: []string{"includeTools"}, deny: []string{"excludeTools"}},
		timeouts: []timeoutField{
			{"timeout", time.Millisecond, true},
		},
	},
	{
		client: "opencode",
		project: []string{
			"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc",
		},
		user: []string{
			"${OPENCODE_CONFIG}",
			"${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json", "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.jsonc",
			"${XDG_CONFIG_HOME:-~/.config}/opencode/config.json",
		},
		content: "OPENCODE_CONFIG_CONTENT",
		keys:    []string{"mcp.servers", "mcp"}, settings: true,
		syntax: curly,
		fields: fields{commandList: true, env: []string{"environment"}},
		timeouts: []timeoutField{
			{"timeout", time.Millisecond, false}, {"timeout.startup", time.Millisecond, false}, {"timeout.request", time.Millisecond, true},
		},
	},
	{
		client: "windsurf",
		user:   []string{"~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json"},
		keys:   []string{"mcpServers"},
		syntax: envColon | fileRefs,
		fields: fields{url: []string{"serverUrl", "url"}, deny: []string{"disabledTools"}},
	},
	{
		client: "copilot",
		user: []string{
			"${COPILOT_HOME:-~/.copilot}/mcp-config.json",
			"${XDG_CONFIG_HOME}/copilot/mcp-config.json", "${XDG_CONFIG_HOME}/.copilot/mcp-config.json",
		},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | dollar | envColon,
		fields: fields{allow: []string{"tools"}},
		timeouts: []timeoutField{
			{"timeout", time.Millisecond, true},
		},
	},
	{
		client: "zed", project: []string{".zed/settings.json"}, user: []string{"${XDG_CONFIG_HOME:-~/.config}/zed/settings.json"},
		keys: []string{"context_servers"}, settings: true,
		syntax: braces | defaults | envColon,
		fields: fields{commandObject: true},
		own:    map[string]bool{"extension": true},
	},
	{
		client: "cline",
		user: []string{
			"${CLINE_MCP_SETTINGS_PATH}",
			"EDITOR/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			"~/.cline/data/settings/cline_mcp_settings.json",
		},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | codeSettings, timeouts: clineTimeouts,
	},
	{
		client: "roo", project: []string{".roo/mcp.json"},
		user:   []string{"EDITOR/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | codeSettings, timeouts: clineTimeouts, fields: fields{deny: []string{"disabledTools"}},
	},
	{
		client: "kilo", project: []string{".kilocode/mcp.json"},
		user: []string{
			"~/.kilocode/cli/global/settings/mcp_settings.json",
			"EDITOR/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
		},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | codeSettings, timeouts: clineTimeouts, fields: fields{deny: []string{"disabledTools"}},
	},
	{
		client: "continue", project: []string{".continue/mcpServers/*"},
		user: []string{"~/.continue/config.yaml", "~/.continue/mcpServers/*"},
		keys: []string{"mcpServers"}, settings: true,
		syntax:   secretRefs | braces | defaults,
		timeouts: []timeoutField{{"connectionTimeout", time.Millisecond, false}},
	},
	{
		client: "goose",
		user:   []string{"${XDG_CONFIG_HOME:-~/.config}/goose/config.yaml"},
		keys:   []string{"extensions"}, settings: true,
		syntax: braces | defaults | dollar,
		fields: fields{
			command: []string{"cmd"}, env: []string{"envs"}, url: []string{"uri"}, passedEnv: []string{"env_keys"},
			allow: []string{"available_tools"},
		},
		allowAll: true,
		timeouts: []timeoutField{{"timeout", time.Second, true}},
		own:      map[string]bool{"builtin": true, "platform": true, "frontend": true, "inline_python": true},
	},
	{
		client: "kiro", project: []string{".kiro/settings/mcp.json"}, user: []string{"~/.kiro/settings/mcp.json"},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | envColon, fields: fields{deny: []string{"disabledTools"}},
		timeouts: []timeoutField{{"timeout", time.Millisecond, true}},
	},
	{
		client: "crush", project: []string{"crush.json", ".crush.json"},
		user: []string{"${XDG_CONFIG_HOME:-~/.config}/crush/crush.json"},
		keys: []string{"mcp"}, settings: true,
		syntax: braces | defaults | dollar | commands, fields: fields{deny: []string{"disabled_tools"}, allow: []string{"enabled_tools"}},
		timeouts: []timeoutField{{"timeout", time.Second, false}},
	},
	{
		client: "lmstudio", user: []string{"~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | envColon,
	},
	{
		client: "amazonq", project: []string{".amazonq/mcp.json"}, user: []string{"~/.aws/amazonq/mcp.json"},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults | envColon, timeouts: []timeoutField{{"timeout", time.Millisecond, true}},
	},
	{
		client: "sema4", user: []string{"~/.sema4ai/sema4ai-studio/mcp_servers.json"},
		keys:   []string{"mcpServers"},
		syntax: braces | defaults,
	},
	{
		client: "hermes", user: []string{"~/.hermes/config.yaml"},
		keys: []string{"mcp_servers"}, settings: true,
		syntax: braces | defaults,
	},
	{
		client: "tabnine", project: []string{".tabnine/agent/settings.json"}, user: []string{"~/.tabnine/agent/settings.json"},
		keys: []string{"mcpServers"}, settings: true,
		syntax: braces | defaults | dollar,
		fields: fields{allow: []string{"includeTools"}, deny: []string{"excludeTools"}},
	},
}

var clineTimeouts = []timeoutField{{"timeout", time.Second, true}}

// of finds the dialect of a client.
func dialectOf(client string) *dialect {
	for _, d := range dialects {
		if d.client == client {
			return d
		}
	}
	panic("no dialect " + client + ": add it to dialects")
}

// guessed are the dialects of files that belong to no client, by their keys.
var guessed = []struct{ key, client string }{
	{"mcp_servers", "codex"}, {"context_servers", "zed"}, {"mcp.servers", "opencode"}, {"mcp", "opencode"}, {"extensions", "goose"},
}
