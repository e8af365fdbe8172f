package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// referenceServers are those of the guide's section, by what npx and uvx call them.
var referenceServers = []struct{ launcher, name, program, variable, folder string }{
	{"npx", "@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", "TOOLCELL_TEST_NPM", "node_modules/.bin"},
	{"npx", "@modelcontextprotocol/server-memory", "mcp-server-memory", "TOOLCELL_TEST_NPM", "node_modules/.bin"},
	{"uvx", "mcp-server-git", "mcp-server-git", "TOOLCELL_TEST_PYPI", "bin"},
	{"uvx", "mcp-server-time", "mcp-server-time", "TOOLCELL_TEST_PYPI", "bin"},
}

// TestGuideWithReferenceServers follows the guide's blocks about real servers, which
// .ci/npm.sh and .ci/pypi.sh have installed. npx and uvx would fetch them.
func TestGuideWithReferenceServers(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	home := newDocFolder(t, h, "docs-reference-")
	d := &reader{host: h, home: home, env: docEnv(h, home, filepath.Join(home, "cache"), ""), clients: map[string]*client{}}
	d.env["TOOLCELL_IMAGE"], d.env["TOOLCELL_REGISTRY_MIRRORS"] = "host", ""
	d.settle(t)
	launchers := map[string]string{}
	for _, s := range referenceServers {
		program := filepath.Join(os.Getenv(s.variable), s.folder, s.program)
		if _, err := os.Stat(program); err != nil {
			t.Skip("needs the servers of .ci/npm.sh and .ci/pypi.sh: make test-all")
		}
		launchers[s.launcher] += fmt.Sprintf("%s) shift; exec '%s' \"$@\" ;;\n", s.name, program)
	}
	for name, cases := range launchers {
		d.put(t, "bin/"+name, "#!/bin/sh\n[ \"$1\" != -y ] || shift\ncase $1 in\n"+cases+"*) echo \"$1 is not known\" >&2; exit 1 ;;\nesac\n")
	}
	d.env["PATH"] = filepath.Join(home, "bin") + ":" + d.env["PATH"]
	if out, err := d.bash(t, home, "chmod +x bin/* && git -c init.defaultBranch=main init -q project").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := read(t, "../../../docs/guide.md")
	blocks, err := docBlocks(text)
	if err != nil {
		t.Fatal(err)
	}
	some := withNeed(blocks, true)
	if len(some) < 4 {
		t.Fatalf("%d blocks are about the reference servers", len(some))
	}
	for _, b := range some {
		if err := d.follow(t, b); err != nil {
			t.Errorf("docs/guide.md:%d: %v\n%s", b.line, err, b.text)
		}
	}
}
