package npm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layerWith makes the folder of a layer with one package.
func layerWith(t *testing.T, pkg, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "node_modules", pkg)
	for name, content := range map[string]string{
		"package.json": manifest, "a.js": "#!/usr/bin/env node\n", "dist/b.js": "// no first line\n", "sh": "#!/bin/sh\n", "elf": "\x7fELF", "empty": "", "../outside.js": "",
	} {
		file := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBinIsTheProgramThatNpxStarts(t *testing.T) {
	for what, c := range map[string]struct{ bin, name, want, wrong string }{
		"one text":         {`"a.js"`, "", "a.js", ""},
		"one of a map":     {`{"other":"./dist/b.js"}`, "", "dist/b.js", ""},
		"two of one file":  {`{"x":"a.js","y":"a.js"}`, "", "a.js", ""},
		"the package's":    {`{"x":"a.js","server":"dist/b.js"}`, "", "dist/b.js", ""},
		"the one named":    {`{"x":"a.js","server":"dist/b.js"}`, "x", "a.js", ""},
		"an empty file":    {`"empty"`, "", "empty", ""},
		"an absolute path": {`"/a.js"`, "server", "a.js", ""},
		"names twice":      {`{"x":"dist/b.js","x":"a.js"}`, "", "a.js", ""},
		"no choice":        {`{"x":"a.js","y":"dist/b.js"}`, "", "", `it has several programs, name one of "x", "y"`},
		"an unknown one":   {`{"x":"a.js"}`, "z", "", `it has no program "z", but "x"`},
		"none":             {`{}`, "", "", "it has no program"},
		"a number":         {`1`, "", "", "it has no program"},
		"odd values":       {`{"x":1,"../y":"a.js"}`, "", "", "it has no program"},
		"outside":          {`"../outside.js"`, "", "", `"../outside.js" is not a file of its own`},
		"outside, deeper":  {`"dist/../../outside.js"`, "", "", "is not a file of its own"},
		"itself":           {`"."`, "", "", "is not a file of its own"},
		"a folder":         {`"dist"`, "", "", "is not a file of its own"},
		"below a file":     {`"a.js/b.js"`, "", "", "is not a file of its own"},
		"missing":          {`"gone.js"`, "", "", "is not a file of its own"},
		"a shell script":   {`"sh"`, "", "", `is for "/bin/sh", not for node`},
		"a binary":         {`"elf"`, "", "", "is a binary"},
		"too many":         {"{" + strings.Repeat(`"a":"a.js",`, maxBins) + `"b":"a.js"}`, "", "", "more than 1000 members"},
	} {
		dir := layerWith(t, "@scope/server", `{"name":"@scope/server","version":"1.0.0","bin":`+c.bin+`}`)
		file, err := Bin(dir, "@scope/server", c.name)
		if c.wrong == "" && (err != nil || file != "node_modules/@scope/server/"+c.want) || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: got %q, %v; want %q %q", what, file, err, c.want, c.wrong)
		}
	}
}

func TestBinFollowsNoLinks(t *testing.T) {
	dir := layerWith(t, "a", `{"bin":"l.js"}`)
	if err := os.Symlink("a.js", filepath.Join(dir, "node_modules/a/l.js")); err != nil {
		t.Fatal(err)
	}
	if _, err := Bin(dir, "a", ""); err == nil || !strings.Contains(err.Error(), "is not a file of its own") {
		t.Errorf("got %v", err)
	}
}

func TestBinOfWhatIsNoPackage(t *testing.T) {
	dir := layerWith(t, "a", `{"bin":`)
	for pkg, want := range map[string]string{
		"a": "its package.json cannot be read", "b": "it has no package.json", "../a": "not the name of a package", "": "not the name of a package",
	} {
		if _, err := Bin(dir, pkg, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", pkg, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "node_modules/a/package.json"), make([]byte, maxManifest+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Bin(dir, "a", ""); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a long one: %v", err)
	}
}

// FuzzManifest chooses a program from whatever a package has as its package.json.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{`{"bin":"a.js"}`, `{"bin":{"a":"b"}}`, "\ufeff{}", `{"bin":[{}]}`, `{"bin":{"a":{"b":[]}}}`} {
		f.Add([]byte(text), "a")
	}
	f.Fuzz(func(_ *testing.T, content []byte, name string) {
		if m, err := parseManifest(content); err == nil {
			_, _ = m.choose("a", name)
		}
	})
}
