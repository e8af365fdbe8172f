package hints

import "testing"

// TestNetworkIsNamed has what libraries and programs say without a network.
func TestNetworkIsNamed(t *testing.T) {
	for name, r := range map[string]Case{
		"urllib":    {Failed: true, Error: "URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"},
		"requests":  {Failed: true, Error: "ConnectionError: HTTPSConnectionPool(host='example.com', port=443): Max retries exceeded with url: / (Caused by NameResolutionError(\"<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to resolve 'example.com' ([Errno -3] Temporary failure in name resolution)\"))"},
		"httpx":     {Failed: true, Error: "ConnectError: [Errno -3] Temporary failure in name resolution"},
		"anyio":     {Failed: true, Error: "ConnectError: All connection attempts failed", Stderr: []string{"OSError: [Errno 101] Network is unreachable"}},
		"aiohttp":   {Failed: true, Error: "ClientConnectorDNSError: Cannot connect to host example.com:443 ssl:default [Temporary failure in name resolution]"},
		"asyncio":   {Failed: true, Error: "OSError: [Errno 101] Connect call failed ('1.1.1.1', 80)"},
		"musl":      {Failed: true, Error: "gaierror: [Errno -3] Try again"},
		"own words": {Failed: true, Error: "RuntimeError: no data", Stderr: []string{"socket.gaierror: [Errno -3] Temporary failure in name resolution", "RuntimeError: no data"}},
		"caught":    {Code: "x = 1; import os, requests", Stdout: []string{"failed: [Errno -3] Temporary failure in name resolution"}},
		"curl":      {Code: "subprocess.run(['curl', url])", Stderr: []string{"curl: (6) Could not resolve host: example.com"}},
		"wget":      {Code: "os.system('wget ' + url)", Stderr: []string{"wget: unable to resolve host address 'example.com'"}},
		"no curl":   {Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'curl'"},
		"no wget":   {Code: "os.system('wget -q ' + url)", Stderr: []string{"sh: 1: wget: not found"}},
		"in bash":   {Code: "os.system('curl ' + url)", Stderr: []string{"bash: line 1: curl: command not found"}},
		"busybox":   {Code: "os.system('curl ' + url)", Stderr: []string{"/bin/sh: curl: not found"}},
		"node":      {Code: "subprocess.run(['node', '-e', 'fetch(url)'])", Stderr: []string{"Error: getaddrinfo EAI_AGAIN example.com"}},
	} {
		if got := For(r); got != noNetwork {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, r := range map[string]Case{
		"a run that reaches hosts": {Network: true, Failed: true, Error: "gaierror: [Errno -3] Temporary failure in name resolution", Code: "import socket"},
		"a server's trouble":       {Failed: true, Error: "MCPError: fetching: Temporary failure in name resolution", Code: "import requests"},
		"caught":                   {Code: "import socket", Stderr: []string{"mcp.runtime.MCPError: fetching: Temporary failure in name resolution"}},
		"a server's long trouble":  {Failed: true, Error: "MCPError: fetching", Stderr: []string{"mcp.runtime.MCPError: fetching", "gaierror: Temporary failure in name resolution"}},
		"a log of a failed run":    {Failed: true, Error: "ValueError: x", Code: "print(await mcp_logs.tail())", Stdout: []string{"ERROR Temporary failure in name resolution"}},
		"a tool that fetches":      {Code: "requests = await mcp_web.fetch(url)\nprint(requests)", Stdout: []string{"Temporary failure in name resolution"}},
		"a log that was read":      {Code: "print(await mcp_logs.tail())", Stderr: []string{"ERROR Temporary failure in name resolution"}},
		"a file's name":            {Mounted: []string{"/workspace"}, Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'curl.log'"},
		"a log without curl":       {Code: "print(await mcp_ci.log())", Stdout: []string{"sh: 1: curl: not found"}},
		"a refused connection":     {Failed: true, Error: "ConnectionRefusedError: [Errno 111] Connection refused", Code: "import socket"},
		"a timeout of its own":     {Failed: true, Error: "TimeoutError: timed out", Code: "import socket"},
	} {
		if got := For(r); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestInstallingIsNamed(t *testing.T) {
	for name, r := range map[string]Case{
		"pip":                 {Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'pip'"},
		"pip3.12":             {Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/bin/pip3.12'"},
		"uv":                  {Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'uv'"},
		"apt-get":             {Failed: true, Error: "PermissionError: [Errno 13] Permission denied: 'apt-get'"},
		"check=True":          {Failed: true, Error: "CalledProcessError: Command '['/usr/local/bin/python3.14', '-m', 'pip', 'install', 'polars']' returned non-zero exit status 1."},
		"python -m pip":       {Code: "subprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])", Stderr: []string{"/usr/local/bin/python3: No module named pip"}},
		"a shell":             {Code: "os.system('pip install x')", Stderr: []string{"sh: 1: pip: not found"}},
		"bash":                {Code: "os.system('bash -c \"pip install x\"')", Stderr: []string{"bash: line 1: pip: command not found"}},
		"busybox":             {Code: "os.system('pip install x')", Stderr: []string{"/bin/sh: pip: not found"}},
		"no index":            {Code: "subprocess.run(['pip', 'install', 'x'])", Stderr: []string{"ERROR: Could not find a version that satisfies the requirement x (from versions: none)"}},
		"Debian":              {Code: "os.system('pip install x')", Stderr: []string{"error: externally-managed-environment"}},
		"read-only":           {Code: "os.system('pip install ./x.whl')", Stderr: []string{"ERROR: Could not install packages due to an OSError: [Errno 30] Read-only file system: '/usr/lib'"}},
		"import pip":          {Failed: true, Error: "ModuleNotFoundError: No module named 'pip'"},
		"a line of a shell":   {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 1)", Code: "pip install y\n"},
		"another line of one": {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 1)", Code: "python3 -m pip install y"},
		"uv's":                {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 1)", Code: "uv pip install y"},
		"a shell's line":      {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 2)", Code: "x = 1\n!python -m pip install y\n"},
	} {
		if got := For(r); got != cannotInstall {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, r := range map[string]Case{
		"another program": {Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'"},
		"a file":          {Mounted: []string{"/workspace"}, Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: 'pipeline.csv'"},
		"a log":           {Code: "print(await mcp_ci.log())", Stderr: []string{"sh: 1: pip: not found"}},
		"modulo":          {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 1)", Code: "x = 5 % %2"},
		"no line":         {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 0)", Code: "x"},
		"no such line":    {Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 99)", Code: "x"},
		"another failure": {Failed: true, Error: "CalledProcessError: Command '['ls', 'pip']' returned non-zero exit status 2."},
	} {
		if got := For(r); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLinesOfIPythonAreExplained, and not run: here all code is Python.
func TestLinesOfIPythonAreExplained(t *testing.T) {
	for line, want := range map[string]string{
		"!ls -l":                `lines that begin with ! are for IPython; in Python: import subprocess; subprocess.run("ls -l", shell=True)`,
		"  ! echo \"a\"":        `lines that begin with ! are for IPython; in Python: import subprocess; subprocess.run("echo \"a\"", shell=True)`,
		"%%bash":                "cells that begin with %% are for IPython; here all code is Python, and subprocess runs commands",
		"%matplotlib inline":    "lines that begin with % are for IPython: leave them out",
		"%pip install six":      cannotInstall,
		"!uv add six":           cannotInstall,
		"!apt list --installed": `lines that begin with ! are for IPython; in Python: import subprocess; subprocess.run("apt list --installed", shell=True)`,
		"x = !ls":               "",
	} {
		if got := For(Case{Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 2)", Code: "x = 1\n" + line + "\ny"}); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	// Code gets no package that the policy does not allow.
	r := Case{Failed: true, Error: "SyntaxError: invalid syntax (<run_python>, line 1)", Code: "!pip install polars", Packages: func(string) bool { return false }}
	if got := For(r); got != cannotInstall {
		t.Errorf("a package that is not allowed: %q", got)
	}
}
