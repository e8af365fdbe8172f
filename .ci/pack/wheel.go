package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
)

// wheelTags are the platforms of a wheel by architecture. The binary is static, so it needs
// no glibc and no musl; these are the oldest that pip knows by such names.
var wheelTags = map[string]string{
	"amd64": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	"arm64": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
}

// wheel writes the package for PyPI and returns its name. Its one content is the binary,
// which pip puts beside the interpreter.
func (p pack) wheel(arch string) (string, error) {
	tag, ok := wheelTags[arch]
	if !ok {
		return "", fmt.Errorf("no wheel is known for %q", arch)
	}
	version := p.version.python()
	info := "toolcell-" + version + ".dist-info/"
	files := []file{
		{"toolcell-" + version + ".data/scripts/toolcell", p.binary, true},
		{info + "METADATA", p.metadata(), false},
		{info + "WHEEL", wheelFile(tag), false},
		{info + "licenses/LICENSE", p.license, false},
		{info + "licenses/third-party-licenses.txt", p.licenses, false},
	}
	name := "toolcell-" + version + "-py3-none-" + tag + ".whl"
	return name, writeZip(filepath.Join(p.dist, name), append(files, record(files, info+"RECORD")), p.at)
}

func wheelFile(platforms string) []byte {
	var b strings.Builder
	b.WriteString("Wheel-Version: 1.0\nGenerator: toolcell\nRoot-Is-Purelib: false\n")
	for platform := range strings.SplitSeq(platforms, ".") {
		b.WriteString("Tag: py3-none-" + platform + "\n")
	}
	return []byte(b.String())
}

// record lists files with their hashes; its own line has none.
func record(files []file, name string) file {
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	b.WriteString(name + ",,\n")
	return file{name, []byte(b.String()), false}
}

func (p pack) metadata() []byte {
	header := `Metadata-Version: 2.4
Name: toolcell
Version: ` + p.version.python() + `
Summary: ` + summary + `
License-Expression: Apache-2.0
License-File: LICENSE
License-File: third-party-licenses.txt
Keywords: mcp,model-context-protocol,sandbox,code-mode,agent
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Go
Classifier: Topic :: Security
Project-URL: Homepage, ` + repository + `
Project-URL: Documentation, ` + repository + `/tree/` + p.source() + `/docs
Project-URL: Changelog, ` + repository + `/blob/` + p.source() + `/CHANGELOG.md
Project-URL: Issues, ` + repository + `/issues
Description-Content-Type: text/markdown

`
	return append([]byte(header), p.readme...)
}
