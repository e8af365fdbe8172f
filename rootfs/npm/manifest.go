package npm

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/rootdir"
	"golang.org/x/sys/unix"
)

// maxManifest bounds a package.json, in bytes.
const maxManifest = 1 << 20

// A manifest is a package.json, as far as it is needed.
type manifest struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Bin     bin    `json:"bin"`
}

// unmarshal reads JSON as npm does, which accepts names twice and bytes that are not UTF-8.
func unmarshal(content []byte, v any) error {
	return json.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// explainJSON returns the reason of an error of unmarshal without Go's types.
func explainJSON(err error) string {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return text.OneLine(err.Error(), maxReason)
	case wrong.Err != nil:
		return text.OneLine(wrong.Err.Error(), maxReason)
	}
	return fmt.Sprintf("%s is of another kind than npm writes", rootdir.Quote(string(wrong.JSONPointer)))
}

// A bin is the programs of a package, by name: one of the package's name, or several. What
// has another form is none, as for npm.
type bin struct {
	one  string
	many map[string]string
}

// maxBins bounds the programs of a package.
const maxBins = 1000

func (b *bin) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		return json.UnmarshalDecode(dec, &b.one)
	case '{':
	default:
		return dec.SkipValue()
	}
	b.many = map[string]string{}
	return eachMember(dec, maxBins, func(name string) error {
		if dec.PeekKind() != '"' {
			return dec.SkipValue()
		}
		var file string
		err := json.UnmarshalDecode(dec, &file)
		if validName(name) {
			b.many[name] = file
		}
		return err
	})
}

// eachMember calls read for each member of the object that comes next, up to most. Read
// has to read the value.
func eachMember(dec *jsontext.Decoder, most int, read func(name string) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for n := 0; dec.PeekKind() != '}'; n++ {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if n == most {
			return fmt.Errorf("an object has more than %d members", most)
		}
		if err := read(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// readManifest reads the package.json in a folder of a root.
func readManifest(root *os.Root, dir string) (manifest, error) {
	f, err := root.Open(path.Join(dir, "package.json"))
	if errors.Is(err, os.ErrNotExist) {
		return manifest{}, errors.New("it has no package.json")
	}
	if err != nil {
		return manifest{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return manifest{}, err
	}
	return parseManifest(content)
}

func parseManifest(content []byte) (m manifest, err error) {
	if len(content) > maxManifest {
		return m, fmt.Errorf("its package.json has more than %d bytes", maxManifest)
	}
	if err := unmarshal(content, &m); err != nil {
		return m, errors.New("its package.json cannot be read: " + explainJSON(err))
	}
	return m, nil
}

// checkIdentity checks that what was unpacked is the package that the lock names: rules
// that allow or deny packages go by that name.
func checkIdentity(root *os.Root, p Package) error {
	m, err := readManifest(root, p.Path)
	if err != nil {
		return err
	}
	if m.Name != p.Name || plainVersion(m.Version) != plainVersion(p.Version) {
		return fmt.Errorf("its package.json is of %s %s", rootdir.Quote(m.Name), rootdir.Quote(m.Version))
	}
	return nil
}

// plainVersion returns a version as a registry lists it: without a v before it and without
// build metadata.
func plainVersion(version string) string {
	version, _, _ = strings.Cut(strings.TrimLeft(strings.TrimSpace(version), "v="), "+")
	return version
}

// Bin returns the file of a program of a package in a layer's folder, relative to that
// folder; node can run it. An empty name means the program that npx would start: the only
// one, or else the one that is named like the package without its scope. An error about the
// name lists the programs that there are.
func Bin(dir, pkg, name string) (file string, err error) {
	if !validName(pkg) {
		return "", fmt.Errorf("%s is not the name of a package", rootdir.Quote(pkg))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	at := "node_modules/" + pkg
	m, err := readManifest(root, at)
	if err == nil {
		file, err = m.choose(pkg, name)
	}
	if err != nil {
		return "", fmt.Errorf("the package %s: %w", pkg, err)
	}
	inside := path.Clean(strings.TrimLeft(file, "/"))
	if !rootdir.Unambiguous(inside, maxDepth) {
		return "", fmt.Errorf("the package %s: its program %s is not a file of its own", pkg, rootdir.Quote(file))
	}
	file = at + "/" + inside
	if err := checkProgram(root, file); err != nil {
		return "", fmt.Errorf("the package %s: its program %s %w", pkg, rootdir.Quote(inside), err)
	}
	return file, nil
}

// choose returns the file of a program, as package.json has it.
func (m manifest) choose(pkg, name string) (string, error) {
	short := pkg[strings.LastIndex(pkg, "/")+1:]
	all := m.Bin.many
	if m.Bin.one != "" {
		all = map[string]string{short: m.Bin.one}
	}
	names := slices.Sorted(maps.Keys(all))
	files := slices.Compact(slices.Sorted(maps.Values(all)))
	switch {
	case len(all) == 0:
		return "", errors.New("it has no program")
	case name == "" && len(files) == 1: // npx takes two names of one file for one program
		return files[0], nil
	case name == "" && all[short] == "":
		return "", fmt.Errorf("it has several programs, name one of %s", text.QuoteList(names, 20))
	case name == "":
		return all[short], nil
	case all[name] == "":
		return "", fmt.Errorf("it has no program %s, but %s", rootdir.Quote(name), text.QuoteList(names, 20))
	}
	return all[name], nil
}

// checkProgram checks that node can run a file: some programs are scripts of a shell, or
// binaries.
func checkProgram(root *os.Root, file string) error {
	info, err := root.Lstat(file)
	if rootdir.IsMissing(err) || errors.Is(err, unix.ENOTDIR) || err == nil && !info.Mode().IsRegular() {
		return errors.New("is not a file of its own")
	}
	if err != nil {
		return err
	}
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [200]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	first, _, _ := strings.Cut(string(head[:n]), "\n")
	if interpreter, script := strings.CutPrefix(first, "#!"); script && !strings.Contains(interpreter, "node") {
		return fmt.Errorf("is for %s, not for node", rootdir.Quote(strings.TrimSpace(interpreter)))
	}
	if strings.HasPrefix(first, "\x7fELF") {
		return errors.New("is a binary, not a script for node")
	}
	return nil
}
