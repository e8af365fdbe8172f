package hints

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

const importRuntime = "runtime is part of mcp: from mcp import runtime"

// proxyImport is for `import mcp_github` and `from mcp_github import x`: the object
// that stands for a server is there without it, and is no module.
func proxyImport(r Case, object string) string {
	server, err := r.Lookup(strings.TrimPrefix(object, "mcp_"))
	if err != nil {
		return err.Error()
	}
	var hint string
	if names := importedFrom(r.Code, object); names != "" {
		hint = fmt.Sprintf("mcp_%s is an object, not a module: from mcp.servers.%s import %s", server.Alias, server.Alias, names)
	} else {
		hint = fmt.Sprintf("mcp_%s needs no import: call its tools with await mcp_%s.<tool>(…)", server.Alias, server.Alias)
	}
	if !r.Granted[server.Name] {
		hint += fmt.Sprintf(", and call run_python with servers=[%q]", server.Name)
	}
	return hint
}

// importedFrom returns what the code imports from a module, if it is on one line.
func importedFrom(code, module string) string {
	for _, found := range fromLine().FindAllStringSubmatch(code, -1) {
		if found[1] == module {
			return strings.TrimSpace(found[2])
		}
	}
	return ""
}

var fromLine = text.Pattern(`(?m)^[ \t]*from[ \t]+(\w+)[ \t]+import[ \t]+([\w, \t*]{1,200})`)

// ownModule is for parts of mcp that are not there. rest follows "mcp.".
func ownModule(r Case, rest string) string {
	part, name, _ := strings.Cut(rest, ".")
	if part != "servers" || name == "" {
		return notInMCP(r, part)
	}
	name, _, _ = strings.Cut(name, ".")
	return noServer(r, name)
}

// notInMCP is for a name that mcp does not have: that of a server, or of the SDK.
func notInMCP(r Case, name string) string {
	if server, err := r.Lookup(strings.TrimPrefix(name, "mcp_")); err == nil {
		return "servers are in mcp.servers: from mcp.servers import " + server.Alias
	}
	return notTheSDK
}

const notTheSDK = "mcp is toolcell's own module here, not the MCP SDK: it has runtime and servers, and await mcp_<server>.<tool>(…) calls a tool"

// noServer is for a server's module that is not there.
func noServer(r Case, name string) string {
	server, err := r.Lookup(name)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the module of server %q is mcp.servers.%s", server.Name, server.Alias)
}

// missingMember is for names that mcp or mcp.servers do not have.
func missingMember(r Case) string {
	found := noMember().FindStringSubmatch(r.Error)
	switch {
	case found == nil || strings.Contains(r.Error, "Did you mean"):
		return ""
	case found[2] == "mcp.servers":
		return noServer(r, found[1])
	}
	return notInMCP(r, found[1])
}

var (
	missingTool = text.Pattern(`^MCPError: server ("(?:[^"\\]|\\.){1,300}") has no tool "(\w{1,60})"`)
	// runtimeForms are the functions of runtime that take a server, and how each is
	// called. Their names are written as foldName does.
	runtimeForms = map[string]string{
		"calltool":              `await runtime.call_tool(%s, "tool", {"name": value})`,
		"listtoolssync":         `runtime.list_tools_sync(%s)`,
		"describeserver":        `runtime.describe_server(%s)`,
		"querytooldocs":         `await runtime.query_tool_docs(%s)`,
		"listresources":         `await runtime.list_resources(%s)`,
		"listresourcetemplates": `await runtime.list_resource_templates(%s)`,
		"readresource":          `await runtime.read_resource(%s, uri)`,
		"listprompts":           `await runtime.list_prompts(%s)`,
		"getprompt":             `await runtime.get_prompt(%s, "name", {"argument": "text"})`,
	}
)

// noTool is for mcp_x.list_resources() and the like: clients of the SDK have such
// methods, and here they are functions of runtime.
func noTool(r Case) string {
	found := missingTool().FindStringSubmatch(r.Error)
	if found == nil {
		return ""
	}
	name := foldName(found[2])
	form, known := runtimeForms[name]
	if !known {
		form, known = runtimeForms[strings.TrimSuffix(name, "sync")]
	}
	if !known {
		return ""
	}
	hint := found[2] + " is a function of runtime, not of a server: " + fmt.Sprintf(form, found[1])
	if !strings.Contains(r.Code, "runtime") {
		hint += ", after from mcp import runtime"
	}
	return hint
}

func foldName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
