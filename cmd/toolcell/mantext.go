package main

// The parts of the manual page that do not come from the commands.

const manDescription = `toolcell runs Python in rootless sandboxes, without Podman, Docker or a daemon.
To an MCP client it is a server with one tool, run_python, whose code finds, reads and calls the user's other MCP servers;
their tools are not in the model's context.
From a shell it does the same with exec, and shows what is there: images, servers, tools, and what the host lacks.`

var exitCodes = []struct{ code, meaning string }{
	{"0", "All is well."},
	{"1", "The run failed, or the command did."},
	{"2", "Wrong usage."},
	{"3", "This host cannot run sandboxes; toolcell doctor says what cures it."},
	{"128+n", "Signal n ended the run, or the program: 130 after Ctrl-C."},
	{"other", "What the code exited with, of toolcell exec."},
}

var manEnvironment = []struct{ name, meaning string }{
	{"MCP_BRIDGE_…", "The settings above."},
	{"MCP_BRIDGE_INPUT_ID", "The value of an input ID that a config file asks for."},
	{"XDG_CACHE_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR, XDG_CONFIG_HOME", "Where images, state, what runs now, and policy.toml are, each in a folder toolcell."},
	{"HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "The way to registries."},
	{"NO_COLOR", "No colors, if set. There are none where output is not a terminal, or TERM is dumb."},
}

var manFiles = []struct{ name, meaning string }{
	{"~/.cache/toolcell", "Images, unpacked, and what is known of servers. It can be removed; it is made again."},
	{"~/.local/state/toolcell", "Saved tools, logins, trust, and the lines typed at the prompt (history)."},
	{"~/.config/toolcell/policy.toml", "What code may call."},
	{"~/MCPs/*.json", "Config files of servers, besides those of MCP clients."},
}

var manExamples = []struct{ command, meaning string }{
	{"toolcell doctor", "Says whether this host can run sandboxes."},
	{"toolcell exec -c 'print(1+1)'", "Runs a line of Python in a sandbox."},
	{"toolcell exec script.py --verbose data", "Runs a file, with its arguments."},
	{"toolcell exec -i --server github", "Prompts for code that may call one of your servers."},
	{"toolcell servers search 'create an issue'", "Finds the tool for something, in all servers."},
	{"source <(toolcell completion bash)", "Completes commands, flags and names with the Tab key."},
}
