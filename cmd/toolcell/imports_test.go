package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// imports are the packages of this module that each of its packages may import;
// x/... is x and all below it. A package without a row fails the test. All of them may
// import what is in internal, which imports nothing of ours.
var imports = map[string][]string{
	"cmd/toolcell":                       {"cmd/toolcell/internal/...", "bridge/...", "mcpproxy/...", "oci/...", "rootfs/...", "images"},
	"cmd/toolcell/e2e":                   {},
	"cmd/toolcell/internal/console":      {"rootfs"},
	"cmd/toolcell/internal/footprint":    {},
	"cmd/toolcell/internal/installer":    {"cmd/toolcell/internal/console", "cmd/toolcell/internal/settings", "mcpproxy/..."},
	"cmd/toolcell/internal/page":         {"cmd/toolcell/internal/console", "cmd/toolcell/internal/rules", "cmd/toolcell/internal/timeline", "bridge/consent", "bridge/consent/inbox", "bridge/record", "bridge/record/history"},
	"cmd/toolcell/internal/releases":     {},
	"cmd/toolcell/internal/repl":         {"cmd/toolcell/internal/console", "bridge/consent", "bridge/run", "oci", "oci/doctor"},
	"cmd/toolcell/internal/rules":        {"cmd/toolcell/internal/console", "cmd/toolcell/internal/timeline", "bridge/record", "bridge/record/history", "mcpproxy/policy", "mcpproxy/policy/rule"},
	"cmd/toolcell/internal/sandboxes":    {"cmd/toolcell/internal/settings", "bridge/record", "bridge/run", "bridge/hints", "bridge/network", "bridge/runner", "oci", "oci/spec", "oci/egress", "rootfs", "rootfs/packages", "bridge/sandboxed", "mcpproxy/commandline", "mcpproxy/config", "mcpproxy/policy", "rootfs/npm", "rootfs/pypi", "rootfs/runtimes"},
	"cmd/toolcell/internal/settings":     {"cmd/toolcell/internal/console", "bridge", "bridge/imaging", "bridge/project", "bridge/record", "bridge/run", "mcpproxy", "mcpproxy/clientconfig/edit", "oci", "oci/doctor", "oci/homes", "oci/spec", "rootfs", "rootfs/cachedir", "images"},
	"cmd/toolcell/internal/terminaltest": {},
	"cmd/toolcell/internal/timeline":     {"cmd/toolcell/internal/console", "bridge/record", "bridge/record/history"},

	"bridge":                     {"bridge/artifacts", "bridge/consent", "bridge/gate", "bridge/project", "bridge/run", "bridge/runner", "bridge/stdio", "bridge/toon", "mcpproxy"},
	"bridge/artifacts":           {"bridge/imaging"},
	"bridge/bridgetest":          {"bridge/...", "mcpproxy/...", "oci/..."},
	"bridge/consent":             {},
	"bridge/consent/inbox":       {"bridge/consent"},
	"bridge/hints":               {"mcpproxy/config"},
	"bridge/hints/hintstest":     {},
	"bridge/gate":                {"bridge/consent", "bridge/record", "mcpproxy", "mcpproxy/catalog", "mcpproxy/config", "mcpproxy/policy", "mcpproxy/signature"},
	"bridge/hostapi":             {"bridge/artifacts", "bridge/consent", "bridge/gate", "bridge/record", "bridge/runner", "bridge/savedtools", "mcpproxy/..."},
	"bridge/imaging":             {},
	"bridge/imaging/imagingtest": {},
	"bridge/network":             {"bridge/runner", "mcpproxy/policy", "mcpproxy/policy/hosts", "oci/egress"},
	"bridge/output":              {},
	"bridge/project":             {"oci/spec"},
	"bridge/record":              {"bridge/record/secrets"},
	"bridge/record/history":      {"bridge/record"},
	"bridge/record/secrets":      {},
	"bridge/run":                 {"bridge/artifacts", "bridge/consent", "bridge/gate", "bridge/hints", "bridge/hostapi", "bridge/imaging", "bridge/network", "bridge/output", "bridge/project", "bridge/record", "bridge/runner", "bridge/savedtools", "bridge/scriptheader", "mcpproxy", "mcpproxy/policy", "mcpproxy/policy/hosts", "oci", "oci/doctor", "oci/egress", "oci/limits", "oci/spec"},
	"bridge/runner":              {"bridge/gate", "mcpproxy", "mcpproxy/signature"},
	"bridge/sandboxed":           {"bridge/network", "mcpproxy/commandline", "mcpproxy/config", "mcpproxy/policy", "mcpproxy/transport/stdio", "oci", "oci/homes", "oci/spec"},
	"bridge/savedtools":          {"mcpproxy/signature"},
	"bridge/scriptheader":        {},
	"bridge/stdio":               {"mcpproxy/wire"},
	"bridge/toon":                {},

	"mcpproxy":                   {"mcpproxy/..."},
	"mcpproxy/catalog":           {"mcpproxy/config", "mcpproxy/pins", "mcpproxy/wire"},
	"mcpproxy/commandline":       {},
	"mcpproxy/config":            {},
	"mcpproxy/elicitation":       {"mcpproxy/redact"},
	"mcpproxy/mcptest":           {"mcpproxy/..."},
	"mcpproxy/login":             {"mcpproxy/config", "mcpproxy/redact", "mcpproxy/transport/remote"},
	"mcpproxy/pins":              {"mcpproxy/config", "mcpproxy/redact"},
	"mcpproxy/policy":            {"mcpproxy/policy/..."},
	"mcpproxy/policy/condition":  {"mcpproxy/policy/rule"},
	"mcpproxy/policy/hosts":      {"mcpproxy/policy/rule"},
	"mcpproxy/policy/rule":       {},
	"mcpproxy/redact":            {"mcpproxy/config"},
	"mcpproxy/rights":            {"mcpproxy/config", "mcpproxy/pins", "mcpproxy/policy", "mcpproxy/redact"},
	"mcpproxy/search":            {},
	"mcpproxy/signature":         {},
	"mcpproxy/toolvalue":         {"mcpproxy/wire"},
	"mcpproxy/transport":         {"mcpproxy/config", "mcpproxy/elicitation", "mcpproxy/redact", "mcpproxy/transport/...", "mcpproxy/wire"},
	"mcpproxy/transport/message": {"mcpproxy/wire"},
	"mcpproxy/transport/remote":  {"mcpproxy/config", "mcpproxy/transport/message", "mcpproxy/wire"},
	"mcpproxy/transport/stdio":   {"mcpproxy/config", "mcpproxy/redact", "mcpproxy/transport/message", "mcpproxy/wire"},
	"mcpproxy/wire":              {},

	"mcpproxy/clientconfig":           {"mcpproxy/clientconfig/plainjson", "mcpproxy/config"},
	"mcpproxy/clientconfig/plainjson": {},
	"mcpproxy/clientconfig/edit":      {"mcpproxy/clientconfig", "mcpproxy/clientconfig/plainjson", "mcpproxy/config"},

	"oci":           {"oci/..."},
	"oci/container": {"oci/host", "oci/limits", "oci/pid1", "oci/spec"},
	"oci/doctor":    {"oci/host", "oci/spec"},
	"oci/egress":    {},
	"oci/fork":      {"oci/container", "oci/host", "oci/limits", "oci/pid1", "oci/spec"},
	"oci/homes":     {"oci/host"},
	"oci/host":      {},
	"oci/limits":    {"oci/host", "oci/spec"},
	"oci/ocitest":   {"oci/..."},
	"oci/pid1":      {"oci/spec"},
	"oci/spec":      {"oci/host"},

	"rootfs":                   {"rootfs/cachedir", "rootfs/python", "rootfs/rootdir", "rootfs/unpack", "images"},
	"rootfs/cachedir":          {"rootfs/rootdir"},
	"rootfs/internal/mkimage":  {"images"},
	"rootfs/fetch":             {"rootfs/rootdir"},
	"rootfs/npm":               {"rootfs/cachedir", "rootfs/fetch", "rootfs/packages", "rootfs/rootdir", "rootfs/serverlock"},
	"rootfs/packages":          {"rootfs/cachedir", "rootfs/fetch", "rootfs/python", "rootfs/rootdir"},
	"rootfs/pypi":              {"rootfs/packages", "rootfs/rootdir", "rootfs/serverlock"},
	"rootfs/python":            {"rootfs/rootdir"},
	"rootfs/rootdir":           {},
	"rootfs/rootfstest":        {"images"},
	"rootfs/runtimes":          {"rootfs/packages"},
	"rootfs/serverlock":        {},
	"rootfs/unpack":            {"rootfs/rootdir"},
	"rootfs/unpack/unpacktest": {"rootfs/unpack"},

	"rootfs/packages/packagestest": {"rootfs/packages"},

	"images": {},

	"internal/boundtest":   {"internal/memory"},
	"internal/deadline":    {"internal/contain"},
	"internal/contain":     {},
	"internal/retry":       {},
	"internal/memory":      {"internal/contain"},
	"internal/netguard":    {},
	"internal/program":     {"internal/state", "internal/text"},
	"internal/pyname":      {},
	"internal/rawjson":     {},
	"internal/requirement": {"internal/text"},
	"internal/seeds":       {},
	"internal/state":       {"internal/text"},
	"internal/text":        {"internal/contain"},
	"internal/toml":        {},
	"internal/ostest":      {},
	"internal/signals":     {"internal/contain", "internal/retry", "internal/text"},

	"internal/signals/signalstest": {},

	"examples/calendar": {}, // programs of their own
	"examples/demo":     {},
	"examples/tasks":    {},
}

// importers are the packages that may import a dependency, or what is below it.
var importers = map[string][]string{
	"github.com/cyphar/filepath-securejoin":       {"rootfs/..."},
	"github.com/google/go-containerregistry":      {"images", "rootfs/..."},
	"github.com/moby/profiles":                    {"oci/spec"},
	"github.com/modelcontextprotocol/go-sdk":      {"bridge", "bridge/artifacts", "bridge/bridgetest", "bridge/stdio", "mcpproxy", "mcpproxy/catalog", "mcpproxy/elicitation", "mcpproxy/mcptest", "mcpproxy/login", "mcpproxy/transport/...", "mcpproxy/wire", "examples/..."},
	"github.com/opencontainers/cgroups":           {"oci/container", "oci/fork", "oci/host", "oci/limits"},
	"github.com/opencontainers/runc/libcontainer": {"oci/container", "oci/fork", "oci/pid1"},
	"github.com/opencontainers/runtime-spec":      {"oci/container", "oci/fork", "oci/spec"},
	"github.com/seccomp/libseccomp-golang":        {"oci/fork", "oci/pid1"},
	"go.opentelemetry.io/otel":                    {"internal/signals"},
	"go.opentelemetry.io/proto":                   {"internal/signals/..."},
	"github.com/urfave/cli":                       {"cmd/toolcell", "cmd/toolcell/internal/settings"},
}

// TestImportsGoDown keeps each package to the packages that it may import.
//
//test:alone
func TestImportsGoDown(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, and the source")
	}
	const module = "github.com/toolcell/toolcell/"
	out, err := exec.Command("go", "list", "-tags", buildTags(), "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	missing := maps.Clone(imports)
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
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, listed := imports[name]
		if !listed {
			t.Errorf("%s has no row in the table of imports", name)
		}
		delete(missing, name)
		for _, imp := range p.Imports {
			if ours, found := strings.CutPrefix(imp, module); found && !anyMatch(allowed, ours) && (strings.HasPrefix(name, "internal/") || !anyMatch([]string{"internal/..."}, ours)) {
				t.Errorf("%s imports %s", name, ours)
			}
			for dep, by := range importers {
				if anyMatch([]string{dep + "/..."}, imp) && !anyMatch(by, name) {
					t.Errorf("%s imports %s", name, imp)
				}
			}
		}
	}
	for name := range missing {
		t.Errorf("the table of imports has a row for %s, which does not exist", name)
	}
}

// anyMatch reports whether one of the patterns, which may end in /..., is of a
// package.
func anyMatch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		above, all := strings.CutSuffix(pattern, "/...")
		return above == name || all && strings.HasPrefix(name, above+"/")
	})
}

// buildTags returns the build tags of this test, which the Makefile has.
func buildTags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				return s.Value
			}
		}
	}
	return ""
}
