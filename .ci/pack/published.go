package main

import (
	"os"
	"path/filepath"
	"regexp"
)

// published returns the README as PyPI and npm show it: with links that lead to this
// version's documents, and the marker by which the MCP registry knows that the package is ours.
func (p pack) published(readme []byte) []byte {
	image := regexp.MustCompile(`(!\[[^\]]*\]\()([^):#]+\))`)
	readme = image.ReplaceAll(readme, []byte("${1}"+repository+"/raw/"+p.source()+"/${2}"))
	link := regexp.MustCompile(`(\]\()([^):#]+(?:#[^)]*)?\))`)
	readme = link.ReplaceAll(readme, []byte("${1}"+repository+"/blob/"+p.source()+"/${2}"))
	return append(readme, "\n<!-- mcp-name: "+registryName+" -->\n"...)
}

// serverJSON writes the entry of the MCP registry and returns its name.
func (p pack) serverJSON() (string, error) {
	content, err := indented(p.registryEntry())
	if err != nil {
		return "", err
	}
	return "server.json", os.WriteFile(filepath.Join(p.dist, "server.json"), content, 0o644)
}

// A registryEntry follows the schema of 2025-12-11, which is in testdata.
type registryEntry struct {
	Schema      string            `json:"$schema"`
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Version     string            `json:"version"`
	Repository  map[string]string `json:"repository"`
	WebsiteURL  string            `json:"websiteUrl"`
	Packages    []registryPackage `json:"packages"`
}

type registryPackage struct {
	RegistryType     string              `json:"registryType"`
	RegistryBaseURL  string              `json:"registryBaseUrl"`
	Identifier       string              `json:"identifier"`
	Version          string              `json:"version"`
	RuntimeHint      string              `json:"runtimeHint"`
	PackageArguments []map[string]string `json:"packageArguments"`
	Transport        map[string]string   `json:"transport"`
}

func (p pack) registryEntry() registryEntry {
	of := func(kind, base, version, runner string) registryPackage {
		return registryPackage{
			RegistryType: kind, RegistryBaseURL: base, Identifier: "toolcell", Version: version, RuntimeHint: runner,
			PackageArguments: []map[string]string{{"type": "positional", "value": "serve"}},
			Transport:        map[string]string{"type": "stdio"},
		}
	}
	return registryEntry{
		Schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		Name:   registryName, Title: "toolcell", Description: summary, Version: p.version.semver(),
		Repository: map[string]string{"url": repository, "source": "github"}, WebsiteURL: repository,
		Packages: []registryPackage{
			of("pypi", "https://pypi.org", p.version.python(), "uvx"),
			of("npm", "https://registry.npmjs.org", p.version.semver(), "npx"),
		},
	}
}
