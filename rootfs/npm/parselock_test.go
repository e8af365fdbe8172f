package npm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/seeds"
)

const registry = "https://registry.example/npm"

// entryOf is a good entry of a lock.
func entryOf(name string) map[string]any {
	return map[string]any{"version": "1.2.3", "resolved": registry + "/" + name + "/-/x-1.2.3.tgz", "integrity": "sha1-AAAA " + integrity([]byte(name))}
}

func parse(lock []byte) (*Tree, error) {
	return ParseLock(context.Background(), lock, Source{Registry: registry, Files: []string{"files.example"}}, linux)
}

func TestLockIsRead(t *testing.T) {
	const alias = "node_modules/@scope/a/node_modules/alias"
	entries := map[string]map[string]any{
		"node_modules/@scope/a":               with(entryOf("@scope/a"), map[string]any{"hasInstallScript": true, "os": []string{"!win32"}, "cpu": "x64", "funding": []any{1}, "dependencies": map[string]any{"b": "*"}}),
		alias:                                 with(entryOf("b"), map[string]any{"name": "b", "version": "2.0.0-rc.1+build", "resolved": "https://files.example/b.tgz"}),
		"node_modules/mirrored":               with(entryOf("mirrored"), map[string]any{"resolved": npmRegistry + "mirrored/-/m.tgz", "libc": []string{"glibc"}, "cpu": []string{"any"}}),
		"node_modules/mac":                    with(entryOf("mac"), map[string]any{"os": []string{"darwin"}, "optional": true}),
		"node_modules/mac/node_modules/inner": entryOf("inner"),
		"node_modules/musl":                   with(entryOf("musl"), map[string]any{"libc": "musl", "optional": true}),

		"node_modules/mirrored/node_modules/bundled": {"version": "1.0.0", "inBundle": true},
	}
	tree, err := parse(lockOf(t, entries))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range tree.Packages() {
		got = append(got, strings.Join([]string{p.Path, p.Name, p.Version, p.URL}, " "))
		if len(p.SHA512) != 128 {
			t.Errorf("%s: SHA-512 %s", p.Path, p.SHA512)
		}
	}
	want := []string{
		"node_modules/@scope/a @scope/a 1.2.3 " + registry + "/@scope/a/-/x-1.2.3.tgz",
		alias + " b 2.0.0-rc.1+build https://files.example/b.tgz",
		"node_modules/mirrored mirrored 1.2.3 " + registry + "/mirrored/-/m.tgz",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := tree.InstallScripts(); !slices.Equal(got, []string{"@scope/a"}) {
		t.Errorf("install scripts: %q", got)
	}
	if got := tree.Wanted(); len(got) != 2 || got[0].Name != "@scope/a" || got[1].Name != "mirrored" {
		t.Errorf("wanted: %v", got)
	}
}

func TestLockRefusesWhatARegistryDoesNotVouchFor(t *testing.T) {
	for what, c := range map[string]struct {
		path string
		more map[string]any
		want string
	}{
		"a folder":             {"../evil", nil, "not the path of a package"},
		"a workspace":          {"packages/a", nil, "not the path of a package"},
		"dots":                 {"node_modules/..", nil, "not the path of a package"},
		"dots inside":          {"node_modules/a/../b", nil, "not the path of a package"},
		"an absolute path":     {"/node_modules/a", nil, "not the path of a package"},
		"a hidden name":        {"node_modules/.bin", nil, "not the path of a package"},
		"no name":              {"node_modules/", nil, "not the path of a package"},
		"a scope alone":        {"node_modules/@scope", nil, "not the path of a package"},
		"a NUL":                {"node_modules/a\x00", nil, "not the path of a package"},
		"node_modules":         {"node_modules/node_modules", nil, "not the path of a package"},
		"a long name":          {"node_modules/" + strings.Repeat("a", 215), nil, "not the path of a package"},
		"too deep":             {strings.Repeat("node_modules/a/", maxNested) + "node_modules/a", nil, "not the path of a package"},
		"an orphan":            {"node_modules/b/node_modules/a", nil, "inside a package that the lock does not have"},
		"a link":               {"node_modules/a", map[string]any{"link": true, "resolved": "packages/a"}, "a link to a folder"},
		"an alias of a path":   {"node_modules/a", map[string]any{"name": "../a"}, "not the name of a package"},
		"no version":           {"node_modules/a", map[string]any{"version": ""}, "is not understood"},
		"a version of lines":   {"node_modules/a", map[string]any{"version": "1.0.0\n"}, "is not understood"},
		"git":                  {"node_modules/a", map[string]any{"resolved": "git+ssh://git@github.com/a/a.git#0123"}, "comes from git"},
		"a file":               {"node_modules/a", map[string]any{"resolved": "file:../a.tgz"}, "comes from a folder or file"},
		"no address":           {"node_modules/a", map[string]any{"resolved": ""}, "does not say where"},
		"another host":         {"node_modules/a", map[string]any{"resolved": "https://evil.example/a.tgz"}, `comes from "evil.example"`},
		"another port":         {"node_modules/a", map[string]any{"resolved": "https://registry.example:444/a.tgz"}, `comes from "registry.example:444"`},
		"a user":               {"node_modules/a", map[string]any{"resolved": "https://registry.example@evil.example/a.tgz"}, "not understood"},
		"no TLS":               {"node_modules/a", map[string]any{"resolved": "http://registry.example:443/a.tgz"}, "not with https"},
		"a long address":       {"node_modules/a", map[string]any{"resolved": registry + strings.Repeat("/a", maxText)}, "more than 4096 bytes"},
		"SHA-1":                {"node_modules/a", map[string]any{"integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}, "no SHA-512"},
		"no integrity":         {"node_modules/a", map[string]any{"integrity": nil}, "no SHA-512"},
		"a short SHA-512":      {"node_modules/a", map[string]any{"integrity": "sha512-AAAA"}, "not one SHA-512"},
		"two of them":          {"node_modules/a", map[string]any{"integrity": integrity(nil) + " " + integrity([]byte("a"))}, "not one SHA-512"},
		"another system":       {"node_modules/a", map[string]any{"os": []string{"darwin", "win32"}}, "does not run on linux"},
		"not this system":      {"node_modules/a", map[string]any{"os": []string{"!linux"}}, "does not run on linux"},
		"another processor":    {"node_modules/a", map[string]any{"cpu": "arm64"}, "does not run on linux"},
		"another libc":         {"node_modules/a", map[string]any{"libc": []string{"musl"}}, "does not run on linux"},
		"many platforms":       {"node_modules/a", map[string]any{"os": make([]string, maxWords+1)}, "more than 64"},
		"bundled with nothing": {"node_modules/a", map[string]any{"inBundle": true}, "is said to be inside another package"},
		"a number":             {"node_modules/a", map[string]any{"version": 1}, "cannot be read"},
	} {
		_, err := parse(lockOf(t, map[string]map[string]any{c.path: with(entryOf("a"), c.more)}))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x00\n") || len(err.Error()) > 1000 {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

func TestLockHasTheFormOfNPM(t *testing.T) {
	many := map[string]map[string]any{}
	for n := range maxPackages + 1 {
		many[fmt.Sprintf("node_modules/p%d", n)] = entryOf("p")
	}
	tooMany := lockOf(t, many)
	delete(many, "node_modules/p0")
	if _, err := parse(lockOf(t, many)); err != nil {
		t.Errorf("the most: %v", err)
	}
	for what, c := range map[string]struct{ lock, want string }{
		"no JSON":         {"{", "cannot be read"},
		"a list":          {`{"lockfileVersion":3,"packages":[]}`, "are not an object"},
		"version 1":       {`{"lockfileVersion":1,"dependencies":{}}`, "lockfileVersion 1; 3 is supported"},
		"twins":           {`{"lockfileVersion":3,"packages":{"node_modules/a":{},"node_modules/a":{}}}`, "cannot be read"},
		"too many":        {string(tooMany), "more than 3000"},
		"too long":        {strings.Repeat(" ", maxLock+1), "more than 4194304 bytes"},
		"what it lacks":   {`{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"1"}}}}`, `does not have "a"`},
		"an evil wish":    {`{"lockfileVersion":3,"packages":{"":{"dependencies":{"../a":"1"}}}}`, `does not have "../a"`},
		"what is no list": {`{"lockfileVersion":3,"packages":{"node_modules/a":{"os":{}}}}`, "not understood"},
	} {
		if _, err := parse([]byte(c.lock)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
	if _, err := ParseLock(t.Context(), lockOf(t, nil), Source{Registry: "registry"}, linux); err == nil || !strings.Contains(err.Error(), "not the address of an npm registry") {
		t.Errorf("no registry: %v", err)
	}
}

// FuzzParseLock reads whatever may be in a lock. What it accepts stays inside node_modules.
func FuzzParseLock(f *testing.F) {
	for _, lock := range seeds.Files(f, "rootfs/npm/testdata/*.json") {
		f.Add(lock)
	}
	f.Add(lockOf(f, map[string]map[string]any{"node_modules/a": entryOf("a"), "node_modules/a/node_modules/@b/c": entryOf("@b/c")}))
	f.Fuzz(func(t *testing.T, lock []byte) {
		tree, err := parse(lock)
		if err != nil {
			return
		}
		for _, p := range tree.Packages() {
			if !strings.HasPrefix(p.Path, "node_modules/") || strings.Contains(p.Path, "..") || len(p.SHA512) != 128 ||
				!strings.HasPrefix(p.URL, registry+"/") && !strings.HasPrefix(p.URL, "https://files.example") && !strings.HasPrefix(p.URL, "https://registry.example") {
				t.Errorf("accepted: %+v", p)
			}
		}
	})
}
