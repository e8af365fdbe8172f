package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImportsGoDown keeps the house in order: who may import what.
func TestImportsGoDown(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, and the source")
	}
	const module = "github.com/toolcell/toolcell/"
	inside := map[string][]string{ // folder → folders it may import
		"cmd/toolcell": {"bridge", "mcpproxy", "oci", "rootfs", "images"},
		"bridge":       {"mcpproxy", "oci"},
		"rootfs":       {"images"},
	}
	parts := map[string][]string{ // subpackage → packages of this module that it may import
		"mcpproxy/config":    {"mcpproxy/text"},
		"mcpproxy/inplace":   {},
		"mcpproxy/oauth":     {"mcpproxy/redact", "mcpproxy/statefile", "mcpproxy/text", "mcpproxy/transport"},
		"mcpproxy/policy":    {"mcpproxy/config", "mcpproxy/statefile", "mcpproxy/text"},
		"mcpproxy/pyname":    {},
		"mcpproxy/rawjson":   {},
		"mcpproxy/redact":    {"mcpproxy/config"},
		"mcpproxy/search":    {},
		"mcpproxy/signature": {"mcpproxy/pyname", "mcpproxy/rawjson", "mcpproxy/text"},
		"mcpproxy/statefile": {},
		"mcpproxy/text":      {},
		"mcpproxy/transport": {"mcpproxy/config", "mcpproxy/rawjson", "mcpproxy/redact", "mcpproxy/text"},
	}
	outside := map[string][]string{ // dependency → folders that may import it
		"github.com/opencontainers/runc":         {"oci"},
		"github.com/google/go-containerregistry": {"images", "rootfs"},
		"github.com/modelcontextprotocol/go-sdk": {"bridge", "mcpproxy"},
		"github.com/urfave/cli":                  {"cmd/toolcell"},
		"github.com/opencontainers/runtime-spec": {"oci"},
		"github.com/moby/profiles":               {"oci"},
		"github.com/opencontainers/cgroups":      {"oci"},
		"github.com/cyphar/filepath-securejoin":  {"rootfs"},
	}
	out, err := exec.Command("go", "list", "-tags", "seccomp,netgo,osusergo,runc_nocriu,urfave_cli_no_docs", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		folder := strings.TrimPrefix(p.ImportPath, module)
		house, _, _ := strings.Cut(folder, "/")
		if house == "cmd" {
			house = "cmd/toolcell"
		}
		if house == "examples" {
			continue // programs of their own
		}
		for _, imp := range p.Imports {
			if target, ours := strings.CutPrefix(imp, module); ours {
				if allowed, listed := parts[folder]; listed && !slices.Contains(allowed, target) {
					t.Errorf("%s imports %s", folder, target)
				}
				if target, _, _ = strings.Cut(target, "/"); target == "cmd" {
					target = "cmd/toolcell"
				}
				if target != house && !slices.Contains(inside[house], target) {
					t.Errorf("%s imports %s", folder, target)
				}
			}
			for dep, allowed := range outside {
				if (imp == dep || strings.HasPrefix(imp, dep+"/")) && !slices.Contains(allowed, house) {
					t.Errorf("%s imports %s", folder, imp)
				}
			}
		}
	}
}
