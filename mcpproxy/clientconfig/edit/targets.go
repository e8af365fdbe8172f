package edit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
)

// A Target is the config file of a client that this program can be put into, and
// other servers taken out of.
type Target struct {
	client
	File    string
	Project bool // it is the project's file, not the user's

	dir     string // whose servers are meant, of those that Claude Code keeps for single directories; see in
	dialect *clientconfig.Dialect
	options clientconfig.Options
}

// A client is how an entry for this program looks in its file. Where that
// file is, and how its fields are called, is in the dialect.
type client struct {
	Client  string   // as a user names it, such as "claude-code"
	Title   string   // as its makers do
	Note    string   // what the user has to do once the file has changed; empty is nothing
	of      string   // the client of the dialect, where that is called otherwise
	program string   // its command, if it has one of its own
	folder  string   // its folder, where it is not that of its file
	user    []string // its files, where they are not the dialect's
	before  string   // members that its own software writes first
	after   string   // and behind the others
}

// Runs may take two minutes, and some clients give a call less.
const (
	timeoutSeconds      = `"timeout": 150`
	timeoutMilliseconds = `"timeout": 150000`
)

// alwaysLoad keeps Claude Code from deferring the one tool there is behind a
// search: code.claude.com/docs/en/mcp#scale-with-mcp-tool-search. Versions before
// 2.1.121 ignore it.
const alwaysLoad = `"alwaysLoad": true`

// targets are the clients in the order in which they are listed.
var targets = []client{
	{Client: "claude-code", Title: "Claude Code", of: "claude", program: "claude", folder: "~/.claude", before: `"type": "stdio"`, after: alwaysLoad, Note: "sessions that are open see it after /mcp or a restart"},
	{Client: "claude-desktop", Title: "Claude Desktop", Note: "restart it"},
	{Client: "cursor", Title: "Cursor", program: "cursor", before: `"type": "stdio"`},
	{Client: "vscode", Title: "VS Code", program: "code", before: `"type": "stdio"`, user: []string{
		"${XDG_CONFIG_HOME:-~/.config}/Code/User/mcp.json",
		"${XDG_CONFIG_HOME:-~/.config}/Code - Insiders/User/mcp.json",
		"${XDG_CONFIG_HOME:-~/.config}/VSCodium/User/mcp.json",
		"~/.vscode-server/data/User/mcp.json",
	}},
	{Client: "windsurf", Title: "Windsurf", program: "windsurf", Note: "press Refresh in its MCP settings, or restart it"},
	{Client: "codex", Title: "Codex", program: "codex", after: `"tool_timeout_sec": 150`},
	{Client: "gemini", Title: "Gemini CLI", program: "gemini"},
	{Client: "qwen", Title: "Qwen Code", program: "qwen"},
	{Client: "antigravity", Title: "Antigravity", program: "agy", Note: "press Refresh in its list of MCP servers, or restart it"},
	{Client: "opencode", Title: "OpenCode", program: "opencode", before: `"type": "local"`, after: `"enabled": true`},
	{Client: "amp", Title: "Amp", program: "amp"},
	{Client: "zed", Title: "Zed", program: "zed", before: `"source": "custom"`},
	{Client: "copilot", Title: "Copilot CLI", program: "copilot", before: `"type": "local"`, after: `"tools": ["*"]`},
	{Client: "cline", Title: "Cline", after: timeoutSeconds, user: []string{
		"${CLINE_MCP_SETTINGS_PATH}",
		"${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		"~/.cline/data/settings/cline_mcp_settings.json",
	}},
	{Client: "roo", Title: "Roo Code", after: timeoutSeconds, user: []string{
		"${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
	}},
	{Client: "kilo", Title: "Kilo Code", after: timeoutSeconds, user: []string{
		"${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
		"~/.kilocode/cli/global/settings/mcp_settings.json",
	}},
	{Client: "goose", Title: "Goose", program: "goose", before: `"name": "toolcell", "type": "stdio"`, after: `"enabled": true, ` + timeoutSeconds},
	{Client: "kiro", Title: "Kiro", program: "kiro-cli", after: timeoutMilliseconds},
	{Client: "crush", Title: "Crush", program: "crush", before: `"type": "stdio"`, after: timeoutSeconds},
	{Client: "lmstudio", Title: "LM Studio", program: "lms"},
	{Client: "amazonq", Title: "Amazon Q", after: timeoutMilliseconds},
	{Client: "hermes", Title: "Hermes", program: "hermes"},
	{Client: "tabnine", Title: "Tabnine", program: "tabnine"},
}

// Targets are the files of the user of all clients.
func Targets(o clientconfig.Options) []Target {
	var all []Target
	for _, t := range targets {
		if p, err := placeOf(o, t, false); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// TargetOf finds the file of a client: the user's, or the project's.
func TargetOf(o clientconfig.Options, client string, project bool) (Target, error) {
	var names []string
	for _, t := range targets {
		if t.Client == client || cmp.Or(t.of, t.Client) == client {
			return placeOf(o, t, project)
		}
		names = append(names, t.Client)
	}
	known := "known are "
	if near := text.Nearest(client, names, 1)[0]; probablyMeant(client, near) {
		known = "did you mean " + near + "? Known are "
	}
	return Target{}, fmt.Errorf("there is no client %q; %s%s", client, known, strings.Join(names, ", "))
}

// probablyMeant reports whether a name is like that of a client: half of it may be
// wrong, but hardly its first letter.
func probablyMeant(given, name string) bool {
	given = strings.ToLower(given)
	return given != "" && given[0] == name[0] && 2*text.EditDistance(given, name) <= max(len(given), len(name))
}

func placeOf(o clientconfig.Options, t client, project bool) (Target, error) {
	o.Trusted = nil
	d := *clientconfig.DialectOf(cmp.Or(t.of, t.Client))
	if t.of == "claude" {
		d = clientconfig.Claude
		d.Project = clientconfig.ClaudeProject.Project
	}
	d.Projects = false // servers of single directories are for in
	p := Target{client: t, Project: project, dialect: &d, options: o}
	var files []string
	switch {
	case project && len(d.Project) == 0:
		return p, fmt.Errorf("%s has no config file in a project", t.Title)
	case project && o.Dir == "":
		return p, fmt.Errorf("there is no working directory, so there is no file of a project")
	case project:
		for _, f := range d.Project {
			files = append(files, filepath.Join(o.Dir, f))
		}
	default:
		patterns := t.user
		if patterns == nil {
			patterns = d.User
		}
		for _, pattern := range patterns {
			files = append(files, o.Resolve(pattern)...)
		}
	}
	if o.Home == "" && !project || len(files) == 0 {
		return p, fmt.Errorf("%s keeps its config in the home directory, and there is none: set HOME", t.Title)
	}
	p.File = inUse(files)
	return p, nil
}

// inUse picks the file that is there, else the one whose folder is.
func inUse(files []string) string {
	for _, there := range []func(string) string{func(f string) string { return f }, filepath.Dir} {
		for _, f := range files {
			if _, err := os.Stat(there(f)); err == nil {
				return f
			}
		}
	}
	return files[0]
}

// Detected reports whether the client seems to be on this machine: it has its
// file, a folder of its own, or its program in PATH.
func (p Target) Detected() bool {
	if _, err := os.Stat(p.File); err == nil {
		return true
	}
	own := filepath.Dir(p.File)
	if p.folder != "" {
		own = p.options.Absolute(p.folder)
	}
	if info, err := os.Stat(own); err == nil && info.IsDir() && own != filepath.Clean(p.options.Home) {
		return true
	}
	_, err := exec.LookPath(p.program)
	return p.program != "" && err == nil
}

// Older returns the file beside File in which earlier versions of the client had
// servers, such as VS Code's settings.json, if it is such a client. This program does
// not go into it; servers can be moved out of it.
func (p Target) Older() (older Target, ok bool) {
	d := clientconfig.OlderDialectOf(p.dialect.Client)
	if d == nil || p.Project {
		return p, false
	}
	of := *d
	of.Keys = of.Keys[:1] // the others are of other clients
	p.dialect, p.File = &of, filepath.Join(filepath.Dir(p.File), filepath.Base(of.User[0]))
	return p, true
}

// key is where the servers are in a file.
func (p Target) key(in document) []string {
	if p.dir != "" {
		return []string{"projects", p.dir, "mcpServers"}
	}
	for _, key := range p.dialect.Keys {
		if path := strings.Split(key, "/"); in.has(path...) && !(len(path) > 1 && (in.has(append(path, "command")...) || in.has(append(path, "url")...))) {
			return path
		}
	}
	last := p.dialect.Keys[len(p.dialect.Keys)-1] // a nested one is only used where it is
	return strings.Split(last, "/")
}

// entry writes one for this program, in the order in which people would.
func (p Target) entry(command string, args []string, env map[string]string) json.RawMessage {
	f := p.dialect.Fields
	members := []string{}
	add := func(name string, value any) {
		text, _ := json.Marshal(value) // of strings
		members = append(members, fmt.Sprintf("%q: %s", name, text))
	}
	if p.before != "" {
		members = append(members, p.before)
	}
	if f.CommandList {
		add("command", append([]string{command}, args...))
	} else {
		add(preferred(f.Command, "command"), command)
		add("args", args)
	}
	if len(env) > 0 {
		add(preferred(f.Env, "env"), env)
	}
	if p.after != "" {
		members = append(members, p.after)
	}
	return json.RawMessage("{" + strings.Join(members, ", ") + "}")
}

// MovedFile is that file of the place's client.
func (p Target) MovedFile() string {
	if paths := p.options.Resolve(p.dialect.MovedFile()); len(paths) > 0 {
		return paths[0]
	}
	return ""
}
