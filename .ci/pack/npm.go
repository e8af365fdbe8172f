package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// launcher finds the binary of this platform among the optional dependencies and becomes it.
//
//go:embed launcher.js
var launcher []byte

// npmCPUs are the names that Node has for architectures.
var npmCPUs = map[string]string{"amd64": "x64", "arm64": "arm64"}

// A manifest is a package.json.
type manifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	MCPName     string            `json:"mcpName,omitempty"` // proves to the MCP registry that the package is ours
	License     string            `json:"license"`
	Homepage    string            `json:"homepage"`
	Repository  map[string]string `json:"repository"`
	Bugs        map[string]string `json:"bugs"`
	Keywords    []string          `json:"keywords,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Files       []string          `json:"files"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Preferred   bool              `json:"preferUnplugged,omitempty"` // Yarn would leave the binary in an archive
	PublishTo   map[string]string `json:"publishConfig"`
}

// npmPlatform writes the package with the binary of one platform and returns its name.
func (p pack) npmPlatform(arch string) (string, error) {
	cpu, ok := npmCPUs[arch]
	if !ok {
		return "", fmt.Errorf("no npm package is known for %q", arch)
	}
	m := p.manifest("@toolcell/linux-" + cpu)
	m.Description = "The program of the package toolcell for Linux on " + cpu
	m.OS, m.CPU, m.Preferred = []string{"linux"}, []string{cpu}, true
	m.Files = []string{"bin", "third-party-licenses.txt"}
	readme := "# @toolcell/linux-" + cpu + "\n\n" + m.Description + ". Install [toolcell](" + repository + ") instead, which brings it.\n"
	return p.npmTarball("toolcell-linux-"+cpu, m, []file{
		{"bin/toolcell", p.binary, true},
		{"third-party-licenses.txt", p.licenses, false},
		{"README.md", []byte(readme), false},
	})
}

// npm writes the package that users install and returns its name.
func (p pack) npm() (string, error) {
	m := p.manifest("toolcell")
	m.MCPName = registryName
	m.Keywords = []string{"mcp", "mcp-server", "model-context-protocol", "sandbox", "code-mode", "python"}
	m.Engines = map[string]string{"node": ">=18"}
	m.Bin = map[string]string{"toolcell": "bin/toolcell.js"}
	m.Files = []string{"bin"}
	m.Optional = map[string]string{}
	for _, cpu := range npmCPUs {
		m.Optional["@toolcell/linux-"+cpu] = m.Version
	}
	return p.npmTarball("toolcell", m, []file{{"bin/toolcell.js", launcher, true}, {"README.md", p.readme, false}})
}

// manifest returns what the packages for npm have in common. They have no script that runs
// when they are installed.
func (p pack) manifest(name string) manifest {
	return manifest{
		Name: name, Version: p.version.semver(), Description: summary, License: "Apache-2.0", Homepage: repository + "#readme",
		Repository: map[string]string{"type": "git", "url": "git+" + repository + ".git"}, // npm compares it with the provenance
		Bugs:       map[string]string{"url": repository + "/issues"},
		PublishTo:  map[string]string{"access": "public"},
	}
}

func (p pack) npmTarball(name string, m manifest, files []file) (string, error) {
	content, err := indented(m)
	if err != nil {
		return "", err
	}
	files = append(files, file{"package.json", content, false}, file{"LICENSE", p.license, false})
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	name += "-" + m.Version + ".tgz"
	return name, writeTarball(filepath.Join(p.dist, name), files, p.at)
}

// indented returns v as JSON for people, with <, > and & as they are.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
