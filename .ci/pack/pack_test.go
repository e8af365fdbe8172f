package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var commitTime = time.Date(2026, 11, 25, 10, 20, 31, 0, time.UTC)

// newPack returns what packages of release 0.1.0 are made of.
func newPack(t *testing.T) pack {
	t.Helper()
	v, err := parseVersion("0.1.0", "v0.1.0-0-g3a6d055e")
	if err != nil {
		t.Fatal(err)
	}
	p := pack{version: v, at: commitTime, dist: t.TempDir(), binary: []byte("the program"), license: []byte("ours"), licenses: []byte("theirs")}
	p.readme = p.published([]byte("# toolcell\n\n[guide](docs/guide.md#top), ![flow](docs/flow.svg), [site](https://go.dev), [below](#install)\n"))
	return p
}

func TestWheel(t *testing.T) {
	p := newPack(t)
	name, err := p.wheel("amd64")
	if err != nil {
		t.Fatal(err)
	}
	if want := "toolcell-0.1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl"; name != want {
		t.Errorf("name = %q, want %q", name, want)
	}
	archive, err := zip.OpenReader(filepath.Join(p.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	content := map[string]string{}
	for _, f := range archive.File {
		names = append(names, f.Name)
		if !f.Modified.Equal(commitTime) {
			t.Errorf("%s is of %v, want %v", f.Name, f.Modified, commitTime)
		}
		want := fs.FileMode(0o644)
		if strings.HasSuffix(f.Name, "/scripts/toolcell") {
			want = 0o755
		}
		if f.Mode() != want {
			t.Errorf("%s has mode %v, want %v", f.Name, f.Mode(), want)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[f.Name] = string(data)
	}
	const info = "toolcell-0.1.0.dist-info/"
	want := []string{
		"toolcell-0.1.0.data/scripts/toolcell", info + "METADATA", info + "WHEEL",
		info + "licenses/LICENSE", info + "licenses/third-party-licenses.txt", info + "RECORD",
	}
	if !slices.Equal(names, want) {
		t.Errorf("files = %q, want %q", names, want)
	}
	checkRecord(t, content, info+"RECORD")
	if got, want := content[info+"WHEEL"], "Wheel-Version: 1.0\nGenerator: toolcell\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_17_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n"; got != want {
		t.Errorf("WHEEL = %q, want %q", got, want)
	}
	header, body, _ := strings.Cut(content[info+"METADATA"], "\n\n")
	for _, line := range []string{"Metadata-Version: 2.4", "Name: toolcell", "Version: 0.1.0", "License-Expression: Apache-2.0", "Description-Content-Type: text/markdown"} {
		if !slices.Contains(strings.Split(header, "\n"), line) {
			t.Errorf("METADATA lacks %q:\n%s", line, header)
		}
	}
	if body != string(p.readme) {
		t.Errorf("the description is %q", body)
	}
}

// checkRecord checks that a wheel's RECORD has every file with its hash and its size.
func checkRecord(t *testing.T, content map[string]string, name string) {
	t.Helper()
	var want []string
	for file, data := range content {
		if file == name {
			want = append(want, file+",,")
			continue
		}
		sum := sha256.Sum256([]byte(data))
		want = append(want, fmt.Sprintf("%s,sha256=%s,%d", file, base64.RawURLEncoding.EncodeToString(sum[:]), len(data)))
	}
	got := strings.Split(strings.TrimSuffix(content[name], "\n"), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("RECORD:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An entry is one of a tarball.
type entry struct {
	mode    int64
	content string
}

func readTarball(t *testing.T, name string) map[string]entry {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !gz.ModTime.IsZero() || gz.Name != "" {
		t.Errorf("%s: the time %v or the name %q is in it", name, gz.ModTime, gz.Name)
	}
	entries, last := map[string]entry{}, ""
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name < last && h.Typeflag != tar.TypeDir {
			t.Errorf("%s: %s comes after %s", name, h.Name, last)
		}
		last = h.Name
		if !h.ModTime.Equal(commitTime) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s: %s is of %v, owner %d:%d %q", name, h.Name, h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries[h.Name] = entry{h.Mode, string(content)}
	}
}

func TestNpm(t *testing.T) {
	p := newPack(t)
	name, err := p.npm()
	if err != nil {
		t.Fatal(err)
	}
	files := readTarball(t, filepath.Join(p.dist, name))
	var m map[string]any
	if err := json.Unmarshal([]byte(files["package/package.json"].content), &m); err != nil {
		t.Fatal(err)
	}
	if name != "toolcell-0.1.0.tgz" || m["name"] != "toolcell" || m["version"] != "0.1.0" || m["mcpName"] != "io.github.toolcell/toolcell" {
		t.Errorf("%s is %v", name, m)
	}
	if got, want := fmt.Sprint(m["optionalDependencies"]), "map[@toolcell/linux-arm64:0.1.0 @toolcell/linux-x64:0.1.0]"; got != want {
		t.Errorf("optionalDependencies = %s, want %s", got, want)
	}
	if m["scripts"] != nil || m["dependencies"] != nil {
		t.Error("something is run or fetched on installation")
	}
	if got := fmt.Sprint(m["bin"]); got != "map[toolcell:bin/toolcell.js]" {
		t.Errorf("bin = %s", got)
	}
	if got := files["package/bin/toolcell.js"]; got.mode != 0o755 || !strings.HasPrefix(got.content, "#!/usr/bin/env node\n") {
		t.Errorf("the launcher has mode %o and begins with %.30q", got.mode, got.content)
	}
	if got := files["package/LICENSE"]; got.content != "ours" || got.mode != 0o644 {
		t.Errorf("LICENSE = %v", got)
	}
}

func TestNpmPlatforms(t *testing.T) {
	p := newPack(t)
	for arch, cpu := range map[string]string{"amd64": "x64", "arm64": "arm64"} {
		name, err := p.npmPlatform(arch)
		if err != nil {
			t.Fatal(err)
		}
		files := readTarball(t, filepath.Join(p.dist, name))
		var m map[string]any
		if err := json.Unmarshal([]byte(files["package/package.json"].content), &m); err != nil {
			t.Fatal(err)
		}
		if want := "toolcell-linux-" + cpu + "-0.1.0.tgz"; name != want || m["name"] != "@toolcell/linux-"+cpu {
			t.Errorf("%s has the name %v, want %s", name, m["name"], want)
		}
		if got, want := fmt.Sprint(m["os"], m["cpu"], m["mcpName"], m["scripts"]), "[linux] ["+cpu+"] <nil> <nil>"; got != want {
			t.Errorf("os, cpu, mcpName, scripts = %s, want %s", got, want)
		}
		if got, want := files["package/bin/toolcell"], (entry{0o755, "the program"}); got != want {
			t.Errorf("the program is %v, want %v", got, want)
		}
	}
}

func TestTarball(t *testing.T) {
	p, tree := newPack(t), t.TempDir()
	for name, mode := range map[string]fs.FileMode{"bin/toolcell": 0o700, "share/man/man1/toolcell.1.gz": 0o600} {
		name = filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	name, err := p.tarball("arm64", tree)
	if err != nil {
		t.Fatal(err)
	}
	got := readTarball(t, filepath.Join(p.dist, name))
	const root = "toolcell-0.1.0-linux-arm64/"
	want := map[string]entry{
		root: {0o755, ""}, root + "bin/": {0o755, ""}, root + "bin/toolcell": {0o755, "x"},
		root + "share/": {0o755, ""}, root + "share/man/": {0o755, ""}, root + "share/man/man1/": {0o755, ""},
		root + "share/man/man1/toolcell.1.gz": {0o644, "x"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s has %v, want %v", name, got, want)
	}
}

// TestSameInputSameBytes also has the clock go on between the two.
func TestSameInputSameBytes(t *testing.T) {
	sums := map[string][32]byte{}
	for range 2 {
		p := newPack(t)
		for _, make := range []func() (string, error){
			func() (string, error) { return p.wheel("arm64") }, p.npm,
			func() (string, error) { return p.npmPlatform("amd64") }, p.serverJSON,
		} {
			name, err := make()
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(p.dist, name))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			if before, ok := sums[name]; ok && sum != before {
				t.Errorf("%s has other bytes now", name)
			}
			sums[name] = sum
		}
		time.Sleep(2 * time.Millisecond)
	}
	if len(sums) != 4 {
		t.Errorf("%d files were compared, want 4", len(sums))
	}
}

func TestPublishedReadmeHasWholeLinks(t *testing.T) {
	got := string(newPack(t).readme)
	want := "# toolcell\n\n[guide](https://github.com/toolcell/toolcell/blob/v0.1.0/docs/guide.md#top), " +
		"![flow](https://github.com/toolcell/toolcell/raw/v0.1.0/docs/flow.svg), [site](https://go.dev), [below](#install)\n" +
		"\n<!-- mcp-name: io.github.toolcell/toolcell -->\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestServerJSONFitsTheSchema(t *testing.T) {
	p := newPack(t)
	name, err := p.serverJSON()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) any {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, err := jsonschema.UnmarshalJSON(f)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("server.json", read("testdata/server.schema.json")); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("server.json")
	if err != nil {
		t.Fatal(err)
	}
	entry := read(filepath.Join(p.dist, name))
	if err := schema.Validate(entry); err != nil {
		t.Error(err)
	}
	got := entry.(map[string]any)
	if id := read("testdata/server.schema.json").(map[string]any)["$id"]; got["$schema"] != id {
		t.Errorf("$schema = %v, and the schema's own address is %v", got["$schema"], id)
	}
	var packages []string
	for _, p := range got["packages"].([]any) {
		p := p.(map[string]any)
		packages = append(packages, fmt.Sprint(p["registryType"], p["identifier"], p["version"], p["runtimeHint"], p["packageArguments"], p["transport"]))
	}
	want := []string{
		"pypi toolcell 0.1.0 uvx [map[type:positional value:serve]] map[type:stdio]",
		"npm toolcell 0.1.0 npx [map[type:positional value:serve]] map[type:stdio]",
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
		packages[i] = strings.ReplaceAll(packages[i], " ", "")
	}
	if !slices.Equal(packages, want) {
		t.Errorf("packages = %q, want %q", packages, want)
	}
}

func TestSBOMListsWhatIsLinked(t *testing.T) {
	program, err := os.Executable() // of Go, with modules in it
	if err != nil {
		t.Fatal(err)
	}
	p := newPack(t)
	name, err := p.sbom("amd64", program, "libseccomp=2.6.0-2,glibc=2.41-12+deb13u1")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(p.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	refs := b.Dependencies[0].DependsOn
	for _, want := range []string{"pkg:golang/github.com/santhosh-tekuri/jsonschema/v6@v6", "pkg:golang/std@1.", "pkg:deb/debian/glibc@2.41-12%2Bdeb13u1", "pkg:deb/debian/libseccomp@2.6.0-2"} {
		if !slices.ContainsFunc(refs, func(ref string) bool { return strings.HasPrefix(ref, want) }) {
			t.Errorf("%q is not among %q", want, refs)
		}
	}
	if b.Metadata.Timestamp != "2026-11-25T10:20:31Z" || b.Metadata.Component.PURL != "pkg:github/toolcell/toolcell@0.1.0" {
		t.Errorf("metadata = %+v", b.Metadata)
	}
}
