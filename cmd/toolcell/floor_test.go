package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onFloor is what one package does for all others: how it looks in the source, and which
// files do it themselves for a reason.
var onFloor = []struct {
	what, home string
	pattern    *regexp.Regexp
	exceptions map[string]string
}{
	{
		"a check of addresses", "internal/netguard",
		regexp.MustCompile(`\.Is(Private|Loopback|Unspecified|GlobalUnicast|(LinkLocal|InterfaceLocal)?(Unicast|Multicast))\(` +
			`|Parse(Prefix|CIDR)\(|InterfaceAddrs\(|RouteGet|"\.localhost"|[!=]= "(localhost|127\.|::1|10\.|169\.254\.)`),
		map[string]string{
			"images/transport.go":                   "in a reference, localhost is a host without a dot or port",
			"mcpproxy/clientconfig/remotefields.go": "which of other clients' redirects this one can wait for, at 127.0.0.1 alone",
			"mcpproxy/policy/hosts/parse.go":        "the networks that the user's policy names",
		},
	},
	{
		"an expansion of variables", "internal/text",
		regexp.MustCompile(`os\.Expand(Env)?\(` +
			`|(Cut\w*|Index\w*|Contains|HasPrefix|Split\w*|Replace\w*|NewReplacer)\(.*["\x60]\$\{|(MustCompile|Pattern)\(.*\\\$\\\{`),
		map[string]string{
			"mcpproxy/clientconfig/expand.go": "what a variable is in the files of each client",
			"mcpproxy/policy/rule/expand.go":  "what a variable is in the policy, and which are secret",
		},
	},
	{
		"a lock between processes", "internal/state",
		regexp.MustCompile(`\.(Flock|FcntlFlock)\(|gofrs/flock`),
		map[string]string{
			"oci/host/idslots.go": "locks of single bytes, one for each user ID",
		},
	},
	{
		"a comparison of a file's times", "internal/state",
		regexp.MustCompile(`\.(Mtim|Ctim)\b|ModTime\(\)\.(Equal|Compare|Unix)|fsnotify`),
		nil,
	},
	{
		"a rename", "internal/state",
		regexp.MustCompile(`\.Rename(at2?)?\(|renameio`),
		map[string]string{
			"bridge/artifacts/publish.go":      "files get their names in a folder that none can see yet",
			"bridge/artifacts/store.go":        "the folder of a run appears and vanishes whole",
			"bridge/consent/inbox/folder.go":   "a socket gets its name once it listens",
			"oci/container/procsubstitutes.go": "a folder that appears whole",
			"oci/container/skeleton.go":        "a folder that appears whole",
			"oci/homes/remove.go":              "folders too far below others come up, to be removed",
			"rootfs/bytecode.go":               "a folder that appears whole",
			"rootfs/cachedir/atomic.go":        "folders that appear whole",
		},
	},
}

// TestFloorIsNotBuiltTwice: a second copy would have another answer one day.
func TestFloorIsNotBuiltTwice(t *testing.T) {
	const root = "../.."
	for _, row := range onFloor {
		unused := maps.Clone(row.exceptions)
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			switch {
			case err != nil:
				return err
			case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && name != "." || name == row.home || name == "examples"):
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			source, err := os.ReadFile(path)
			for number, line := range strings.Split(string(source), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if row.pattern.MatchString(code) {
					if _, ok := row.exceptions[name]; !ok {
						t.Errorf("%s:%d has %s, which belongs into %s: %s", name, number+1, row.what, row.home, strings.TrimSpace(line))
					}
					delete(unused, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, reason := range unused {
			t.Errorf("%s has no longer %s, so the exception goes (%s)", name, row.what, reason)
		}
	}
}
