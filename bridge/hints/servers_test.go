package hints

import (
	"fmt"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// lookupTwo finds git-hub, which the run could call, and files, which it could not.
func lookupTwo(name string) (config.Server, error) {
	switch name {
	case "git_hub", "git-hub", "GitHub":
		return config.Server{Name: "git-hub", Alias: "git_hub"}, nil
	case "files":
		return config.Server{Name: "files", Alias: "files"}, nil
	}
	return config.Server{}, fmt.Errorf("there is no server %q", name)
}

// TestNamesOfServersLeadToThem, however the code tried to get at one.
func TestNamesOfServersLeadToThem(t *testing.T) {
	const module, undefined = "ModuleNotFoundError: No module named '%s'", "NameError: name '%s' is not defined%s"
	const member = "ImportError: cannot import name '%s' from '%s' (unknown location)%s"
	const grant = `, and call run_python with servers=["files"]`
	const runtime, jira = "runtime is part of mcp: from mcp import runtime", `there is no server "jira"`
	for _, tt := range []struct{ err, code, want string }{
		{fmt.Sprintf(module, "mcp_git_hub"), "import mcp_git_hub", "mcp_git_hub needs no import: call its tools with await mcp_git_hub.<tool>(…)"},
		{fmt.Sprintf(module, "mcp_files"), "import mcp_files", "mcp_files needs no import: call its tools with await mcp_files.<tool>(…)" + grant},
		{fmt.Sprintf(module, "mcp_jira"), "import mcp_jira", jira},
		{fmt.Sprintf(module, "mcp_git_hub"), "from os import path\nfrom mcp_git_hub import a, b \n", "mcp_git_hub is an object, not a module: from mcp.servers.git_hub import a, b"},
		{fmt.Sprintf(module, "mcp_files"), "from mcp_files import read", "mcp_files is an object, not a module: from mcp.servers.files import read" + grant},
		{fmt.Sprintf(module, "mcp_servers"), "import mcp_servers", `mcp_servers needs no import: mcp_servers["name"] is a server`},
		{fmt.Sprintf(module, "mcp.servers.GitHub"), "", `the module of server "git-hub" is mcp.servers.git_hub`},
		{fmt.Sprintf(module, "mcp.servers.jira"), "", jira},
		{fmt.Sprintf(module, "mcp.servers.jira.issues"), "", jira},
		{fmt.Sprintf(module, "mcp.servers"), "", notTheSDK},
		{fmt.Sprintf(module, "mcp.client.stdio"), "", notTheSDK},
		{fmt.Sprintf(module, "mcp.client"), "", notTheSDK},
		{fmt.Sprintf(module, "mcp.git_hub"), "", "servers are in mcp.servers: from mcp.servers import git_hub"},
		{fmt.Sprintf(module, "runtime"), "import runtime", runtime},
		{fmt.Sprintf(member, "GitHub", "mcp.servers", ""), "", `the module of server "git-hub" is mcp.servers.git_hub`},
		{fmt.Sprintf(member, "jira", "mcp.servers", ""), "", jira},
		{fmt.Sprintf(member, "jira", "mcp.servers", ". Did you mean: 'files'?"), "", ""},
		{fmt.Sprintf(member, "git_hub", "mcp", ""), "", "servers are in mcp.servers: from mcp.servers import git_hub"},
		{fmt.Sprintf(member, "mcp_git_hub", "mcp", ""), "", "servers are in mcp.servers: from mcp.servers import git_hub"},
		{fmt.Sprintf(member, "ClientSession", "mcp", ""), "", notTheSDK},
		{fmt.Sprintf(member, "runtimes", "mcp", ". Did you mean: 'runtime'?"), "", ""},
		{fmt.Sprintf(undefined, "runtime", ". Did you forget to import 'runtime'?"), "runtime.list_servers()", runtime},
		{fmt.Sprintf(undefined, "mcp_jira", ""), "await mcp_jira.a()", jira},
		{fmt.Sprintf(undefined, "mcp_fils", ". Did you mean: 'mcp_files'?"), "await mcp_fils.a()", ""},
		{fmt.Sprintf(undefined, "mcp_files", ""), "del mcp_files; mcp_files", ""},
		{fmt.Sprintf(undefined, "jira", ""), "jira", ""},
	} {
		r := Case{Failed: true, Error: tt.err, Code: tt.code, Lookup: lookupTwo, Granted: map[string]bool{"git-hub": true}, Earlier: &Names{}}
		if got := For(r); got != tt.want {
			t.Errorf("%s, %q:\ngot  %s\nwant %s", tt.err, tt.code, got, tt.want)
		}
	}
}

// TestFunctionsOfRuntimeAreNoTools, whichever way a client of the SDK writes them.
func TestFunctionsOfRuntimeAreNoTools(t *testing.T) {
	const imported = ", after from mcp import runtime"
	for _, tt := range []struct{ tool, code, want string }{
		{"list_resources", "", `list_resources is a function of runtime, not of a server: await runtime.list_resources("git-hub")` + imported},
		{"list_resources", "from mcp import runtime", `list_resources is a function of runtime, not of a server: await runtime.list_resources("git-hub")`},
		{"readResource", "", `readResource is a function of runtime, not of a server: await runtime.read_resource("git-hub", uri)` + imported},
		{"get_prompt_sync", "", `get_prompt_sync is a function of runtime, not of a server: await runtime.get_prompt("git-hub", "name", {"argument": "text"})` + imported},
		{"list_tools_sync", "", `list_tools_sync is a function of runtime, not of a server: runtime.list_tools_sync("git-hub")` + imported},
		{"delete_issues", "", ""},
		{"sync", "", ""},
	} {
		failure := `MCPError: server "git-hub" has no tool "` + tt.tool + `"; the nearest are "list-issues"`
		if got := For(Case{Failed: true, Error: failure, Code: tt.code}); got != tt.want {
			t.Errorf("%s, %q:\ngot  %s\nwant %s", tt.tool, tt.code, got, tt.want)
		}
	}
}
