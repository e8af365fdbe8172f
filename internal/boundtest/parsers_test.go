package boundtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notMeasured are the packages that decode something and need no row: why.
var notMeasured = map[string]string{
	"bridge/consent/inbox":           "requests of 4 KiB and replies of programs that run as this user, or as root",
	"bridge/record":                  "files of toolcell's own, in lines of 1 MiB at most",
	"bridge/record/history":          "the same",
	"bridge/toon":                    "results that toolcell has encoded, whose text is measured in bridge",
	"cmd/toolcell":                   "what the user types, and values that calls gave, which are measured where they come in",
	"cmd/toolcell/internal/rules":    "arguments that bridge/record/history has read, and the policy, which is the user's own file",
	"cmd/toolcell/internal/timeline": "entries that bridge/record/history has read",
	"cmd/toolcell/internal/repl":     "what the user types, and the history of it",
	"internal/toml":                  "its callers are measured: headers of code, locks, config files",
	"mcpproxy":                       "it finds members in messages that were read, with rawjson",
	"mcpproxy/clientconfig/edit":     "files of the user's own, which install edits",
	"internal/program":               "a file of toolcell's own, and what a toolcell of this user says of its version",
	"internal/state":                 "files of toolcell's own",
	"mcpproxy/wire":                  "its callers are measured: messages of servers and of the client",
	"oci/homes":                      "notes of toolcell's own, and what it says to itself",
	"oci/container":                  "the state of toolcell's own sandboxes",
	"oci/limits":                     "tables of the kernel",
	"rootfs/cachedir":                "files of toolcell's own; what is read as a record is measured in rootfs",
}

// decoders are the calls that decode what may come from outside.
var decoders = regexp.MustCompile(`\b(json\.(Unmarshal|NewDecoder)|jsontext\.NewDecoder|yaml\.(Unmarshal|NewDecoder)|(go)?toml\.(Unmarshal|Decode|JSON)|xml\.(Unmarshal|NewDecoder)|` +
	`gob\.NewDecoder|csv\.NewReader|tar\.NewReader|zip\.NewReader|html\.(Parse|NewTokenizer)|http\.Read(Request|Response)|textproto\.NewReader|mail\.\w+|x509\.Parse\w+|` +
	`image\.Decode(Config)?|rawjson\.(Members|Items|Canonical|Scanner)|bufio\.NewScanner)\b`)

// TestParsersHaveRows finds packages that decode something, measure nothing, and are not
// said to need it.
func TestParsersHaveRows(t *testing.T) {
	decodes, measures := map[string]string{}, map[string]bool{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || ofTests(path) {
			return err
		}
		source, err := fs.ReadFile(root, path)
		dir := filepath.Dir(path)
		switch {
		case strings.HasSuffix(path, "bounds_test.go"):
			measures[dir] = measures[dir] || strings.Contains(string(source), "boundtest.Run(")
		case strings.HasSuffix(path, "_test.go"):
		default:
			if found := decoders.Find(source); found != nil {
				decodes[dir] = filepath.Base(path) + " calls " + string(found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(decodes)) {
		if why := notMeasured[dir]; !measures[dir] && why == "" {
			t.Errorf("%s: %s, and nothing there is measured: give it a TestBounds, or say in notMeasured why it needs none", dir, decodes[dir])
		} else if measures[dir] && why != "" {
			t.Errorf("%s is measured, and notMeasured says that it need not be", dir)
		}
	}
	for dir := range notMeasured {
		if decodes[dir] == "" {
			t.Errorf("notMeasured has %s, which decodes nothing", dir)
		}
	}
}

// ofTests reports whether a file is only there for tests or as an example.
func ofTests(path string) bool {
	for _, dir := range []string{".ci", "examples", "internal/boundtest", "internal/seeds", "cmd/toolcell/e2e", "mcpproxy/mcptest", "rootfs/rootfstest", "rootfs/internal"} {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}
