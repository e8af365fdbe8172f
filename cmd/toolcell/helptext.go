package main

// examples are what the help of a command ends with, by its name.
var examples = map[string][]string{
	"toolcell":                 {"toolcell doctor", "toolcell exec -c 'print(1 + 1)'"},
	"toolcell serve":           {"toolcell serve", "toolcell serve --image ghcr.io/team/science --timeout 60s"},
	"toolcell exec":            {"toolcell exec -c 'print(1 + 1)'", "toolcell exec --server github report.py", "toolcell exec -i"},
	"toolcell images":          {"toolcell images pull python:3.14-slim", "toolcell images list"},
	"toolcell images pull":     {"toolcell images pull python:3.14-slim", "toolcell images pull --creds ada ghcr.io/team/science"},
	"toolcell images list":     {"toolcell images list", "toolcell images list --json"},
	"toolcell images inspect":  {"toolcell images inspect python:3.14-slim", "toolcell images inspect oci:/srv/science"},
	"toolcell images rm":       {"toolcell images rm python:3.13-slim", "toolcell images rm ghcr.io/team/science ghcr.io/team/tools"},
	"toolcell images prune":    {"toolcell images prune --unused 30", "toolcell images prune --max-size 5g"},
	"toolcell images verify":   {"toolcell images verify", "toolcell images verify --repair python:3.14-slim"},
	"toolcell servers":         {"toolcell servers list", "toolcell servers search 'create an issue'"},
	"toolcell servers list":    {"toolcell servers list", "toolcell servers list --json"},
	"toolcell servers check":   {"toolcell servers check", "toolcell servers check github"},
	"toolcell servers tools":   {"toolcell servers tools github", "toolcell servers tools --json github"},
	"toolcell servers login":   {"toolcell servers login github", "toolcell servers login --no-browser github"},
	"toolcell servers logout":  {"toolcell servers logout github", "toolcell servers logout --state-dir /srv/toolcell github"},
	"toolcell servers search":  {"toolcell servers search 'create an issue'", "toolcell servers search --json calendar"},
	"toolcell servers call":    {"toolcell servers call github list_issues '{\"owner\": \"octo\", \"repo\": \"cat\"}'", "toolcell servers call time get_current_time '{\"timezone\": \"UTC\"}'"},
	"toolcell servers trust":   {"toolcell servers trust .mcp.json", "toolcell servers trust .cursor/mcp.json .vscode/mcp.json"},
	"toolcell servers untrust": {"toolcell servers untrust .mcp.json", "toolcell servers untrust .cursor/mcp.json"},
	"toolcell servers set":     {"toolcell servers set github token", "toolcell servers set github token <token.txt"},
	"toolcell tools":           {"toolcell tools list", "toolcell tools export >user_tools.py"},
	"toolcell tools list":      {"toolcell tools list", "toolcell tools list --json"},
	"toolcell tools show":      {"toolcell tools show net_price", "toolcell tools show --json net_price"},
	"toolcell tools rm":        {"toolcell tools rm net_price", "toolcell tools rm net_price gross_price"},
	"toolcell tools export":    {"toolcell tools export >user_tools.py", "toolcell tools export net_price"},
	"toolcell install":         {"toolcell install cursor codex", "toolcell install claude-code --move-servers"},
	"toolcell uninstall":       {"toolcell uninstall cursor", "toolcell uninstall --all --dry-run"},
	"toolcell doctor":          {"toolcell doctor", "toolcell doctor --json"},
	"toolcell version":         {"toolcell version", "toolcell version --json"},
	"toolcell completion":      {"source <(toolcell completion bash)", "toolcell completion fish | source"},
	"toolcell man":             {"toolcell man | man -l -", "toolcell man >~/.local/share/man/man1/toolcell.1"},
	"toolcell help":            {"toolcell help settings", "toolcell help images pull"},
}

// mainSettings are those that the help of a command with many settings explains.
var mainSettings = map[string][]string{
	"toolcell serve":         {"image", "timeout", "memory", "mounts"},
	"toolcell exec":          {"image", "timeout", "memory", "mounts"},
	"toolcell doctor":        {"image", "memory", "mounts"},
	"toolcell images pull":   {"platform", "authfile"},
	"toolcell images verify": {"platform", "authfile"},
}
