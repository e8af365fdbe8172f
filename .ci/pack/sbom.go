package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// A bill lists the components of a program as CycloneDX 1.6 has it. Common tools know only
// Go modules, and not the C libraries that are linked in.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     billMetadata `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependents `json:"dependencies"`
}

type billMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

type dependents struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// sbom writes the list of components of the program at binary and returns its name. Go
// notes in the program what modules are in it; libraries has the C libraries.
func (p pack) sbom(arch, binary, libraries string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", err
	}
	parts := []component{purl("library", "golang", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m))
	}
	for library := range strings.SplitSeq(libraries, ",") {
		name, version, ok := strings.Cut(library, "=")
		if !ok {
			return "", fmt.Errorf("%q is not NAME=VERSION", library)
		}
		parts = append(parts, purl("library", "deb/debian", name, version))
	}
	main := purl("application", "github/toolcell", "toolcell", p.version.semver())
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Components: parts,
		Metadata:     billMetadata{p.at.Format(time.RFC3339), main},
		Dependencies: []dependents{{Ref: main.Ref}},
	}
	for _, c := range parts {
		b.Dependencies[0].DependsOn = append(b.Dependencies[0].DependsOn, c.Ref)
	}
	content, err := indented(b)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("toolcell-%s-linux-%s.cdx.json", p.version.semver(), arch)
	return name, os.WriteFile(filepath.Join(p.dist, name), content, 0o644)
}

func module(m *debug.Module) component {
	return purl("library", "golang", m.Path, m.Version)
}

// purl returns a component with its package URL, in which a + of a version is escaped.
func purl(kind, namespace, name, version string) component {
	url := fmt.Sprintf("pkg:%s/%s@%s", namespace, name, strings.NewReplacer("+", "%2B", ":", "%3A").Replace(version))
	return component{Type: kind, Ref: url, Name: name, Version: version, PURL: url}
}
