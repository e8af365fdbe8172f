package npm

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

const (
	maxLock     = 4 << 20 // bytes; one of 236 packages has 130,000
	maxPackages = 3000
	maxNested   = 20      // packages inside each other's folders
	maxText     = 4 << 10 // bytes of an address or an integrity
	maxWords    = 64      // of os, cpu or libc
)

// Names become parts of paths, versions of texts. Old names may have capital letters.
var (
	nameForm    = text.Pattern(`^(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$`)
	versionForm = text.Pattern(`^[0-9]+\.[0-9]+\.[0-9]+(?:[-+][A-Za-z0-9.+-]+)?$`)
)

// validName reports whether a text is the name of a package. npm itself allows 214 bytes,
// and neither of the two other names that mean something in a folder of packages.
func validName(name string) bool {
	return len(name) <= 214 && nameForm().MatchString(name) && name != "node_modules"
}

// A Package is one of a lock.
type Package struct {
	Path    string // from the folder of the layer: node_modules/NAME, or deeper
	Name    string // its own, which may differ from that of its folder
	Version string
	URL     string // of its tarball
	SHA512  string // of its tarball, in hexadecimal digits

	// InstallScript means that it has one, which does not run on a layer.
	InstallScript bool
	Optional      bool // those that need it do without where it cannot be installed
}

// A Tree is a lock: which packages, in which versions, from where, in which folders.
type Tree struct {
	packages []Package // by path
	wanted   []string  // the names that the lock was made for
}

// Packages returns all packages, ordered by their paths.
func (t *Tree) Packages() []Package { return slices.Clone(t.packages) }

// Wanted returns the packages that the lock was made for, ordered by name. The others are
// what these need.
func (t *Tree) Wanted() (all []Package) {
	for _, name := range t.wanted {
		if at, found := t.find("node_modules/" + name); found {
			all = append(all, t.packages[at])
		}
	}
	return all
}

// InstallScripts returns the names of the packages that have install scripts, which no
// layer has run. Some do not work without: those that compile or download a binary.
func (t *Tree) InstallScripts() (names []string) {
	return t.namesOf(func(p Package) bool { return p.InstallScript })
}

// neededScripts returns those of InstallScripts that are not optional everywhere.
func (t *Tree) neededScripts() (names []string) {
	return t.namesOf(func(p Package) bool { return p.InstallScript && !p.Optional })
}

// namesOf returns the names of some packages, in order.
func (t *Tree) namesOf(those func(Package) bool) (names []string) {
	for _, p := range t.packages {
		if those(p) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (t *Tree) find(path string) (at int, found bool) {
	return slices.BinarySearchFunc(t.packages, path, func(p Package, path string) int { return strings.Compare(p.Path, path) })
}

func (t *Tree) has(path string) bool { _, found := t.find(path); return found }

// A lockEntry is one of a lock's packages. Other members are not needed.
type lockEntry struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Resolved     string          `json:"resolved"`
	Integrity    string          `json:"integrity"`
	Link         bool            `json:"link"`
	InBundle     bool            `json:"inBundle"`
	Optional     bool            `json:"optional"`
	Scripts      bool            `json:"hasInstallScript"`
	OS           words           `json:"os"`
	CPU          words           `json:"cpu"`
	Libc         words           `json:"libc"`
	Dependencies dependencyNames `json:"dependencies"`
}

// lockEntries are the packages of a lock, by path.
type lockEntries map[string]lockEntry

// UnmarshalJSONFrom bounds how many there are while they are read.
func (e *lockEntries) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return errors.New("its packages are not an object")
	}
	*e = lockEntries{}
	return eachMember(dec, maxPackages+1, func(path string) error { // and the one without a path
		var entry lockEntry
		err := json.UnmarshalDecode(dec, &entry)
		(*e)[path] = entry
		return err
	})
}

// dependencyNames are the names of an object.
type dependencyNames []string

// UnmarshalJSONFrom keeps no more than there can be packages.
func (d *dependencyNames) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	return eachMember(dec, maxPackages, func(name string) error {
		*d = append(*d, name)
		return dec.SkipValue()
	})
}

// words are a list of words, or only one.
type words []string

// UnmarshalJSONFrom bounds the list.
func (w *words) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		*w = words{""}
		return json.UnmarshalDecode(dec, &(*w)[0])
	}
	if dec.PeekKind() != '[' {
		return errors.New("a list of platforms is not understood")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if len(*w) == maxWords {
			return fmt.Errorf("a list of platforms has more than %d", maxWords)
		}
		var word string
		if err := json.UnmarshalDecode(dec, &word); err != nil {
			return err
		}
		*w = append(*w, word)
	}
	_, err := dec.ReadToken()
	return err
}

// ParseLock reads a package-lock.json, version 3, of which it refuses what does not come
// from a registry with a SHA-512: folders, links, git, addresses of other hosts. Optional
// packages for other platforms are left out.
//
// npm's own registry stands for the one of the source, as it does for npm: locks that are
// made with a mirror name it all the same.
//
// It waits until there is room to read the lock, or ctx ends.
func ParseLock(ctx context.Context, content []byte, from Source, on Platform) (*Tree, error) {
	if len(content) > maxLock {
		return nil, fmt.Errorf("the lock has more than %d bytes", maxLock)
	}
	return memory.Decode(ctx, "reading a lock of npm", len(content), memory.Lock, func() (*Tree, error) {
		return parseLock(content, from, on)
	})
}

func parseLock(content []byte, from Source, on Platform) (*Tree, error) {
	origins, err := from.origins()
	if err != nil {
		return nil, err
	}
	var file struct {
		Version  int         `json:"lockfileVersion"`
		Packages lockEntries `json:"packages"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("the lock cannot be read: %s", explainJSON(err))
	}
	if file.Version != 3 {
		return nil, fmt.Errorf("the lock has lockfileVersion %d; 3 is supported", file.Version)
	}
	tree, err := file.Packages.tree(from.Registry, origins, on)
	if err != nil {
		return nil, fmt.Errorf("the lock: %w", err)
	}
	return tree, nil
}

// tree converts the entries of a lock.
func (e lockEntries) tree(registry string, from fetch.Origins, on Platform) (*Tree, error) {
	tree := &Tree{}
	leftOut := map[string]bool{}
	paths := make([]string, 0, len(e))
	for path := range e {
		if path != "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths) // what contains others comes before them
	for _, path := range paths {
		entry := e[path]
		name, outer, err := splitPath(path)
		if err != nil {
			return nil, err
		}
		if outer != "" && leftOut[outer] {
			leftOut[path] = true
			continue
		}
		if _, there := e[outer]; outer != "" && !there {
			return nil, fmt.Errorf("%s is inside a package that the lock does not have", rootdir.Quote(path))
		}
		p, ok, err := entry.read(path, cmp.Or(entry.Name, name), registry, from, on)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rootdir.Quote(path), err)
		}
		if !ok {
			leftOut[path] = true
			continue
		}
		tree.packages = append(tree.packages, p)
	}
	return tree, tree.want(e[""].Dependencies)
}

// want records which packages the lock is for.
func (t *Tree) want(names []string) error {
	for _, name := range names {
		if !validName(name) || !t.has("node_modules/"+name) {
			return fmt.Errorf("it does not have %s, which it is for", rootdir.Quote(name))
		}
	}
	t.wanted = slices.Sorted(slices.Values(names))
	return nil
}

// splitPath returns the name of the last folder of a path, and the path of the package that
// it is inside of, or "".
func splitPath(path string) (name, outer string, err error) {
	parts := strings.Split("/"+path, "/node_modules/")
	if parts[0] != "" || len(parts) < 2 || len(parts) > maxNested+1 {
		return "", "", fmt.Errorf("%s is not the path of a package from a registry", rootdir.Quote(path))
	}
	for _, part := range parts[1:] {
		if !validName(part) {
			return "", "", fmt.Errorf("%s is not the path of a package from a registry", rootdir.Quote(path))
		}
	}
	name = parts[len(parts)-1]
	return name, strings.TrimSuffix(strings.TrimSuffix(path, "node_modules/"+name), "/"), nil
}

// read converts an entry; ok is false if it is left out.
func (e lockEntry) read(path, name, registry string, from fetch.Origins, on Platform) (p Package, ok bool, err error) {
	switch {
	case e.Link:
		return p, false, errors.New("it is a link to a folder")
	case !validName(name):
		return p, false, fmt.Errorf("%s is not the name of a package", rootdir.Quote(name))
	case len(e.Version) > 200 || !versionForm().MatchString(e.Version):
		return p, false, fmt.Errorf("its version %s is not understood", rootdir.Quote(e.Version))
	case e.InBundle: // it comes in the tarball of the package that it is inside of
		if strings.Count("/"+path, "/node_modules/") < 2 {
			return p, false, errors.New("it is said to be inside another package, and is not")
		}
		return p, false, nil
	case !e.fits(on) && e.Optional:
		return p, false, nil
	case !e.fits(on):
		return p, false, fmt.Errorf("%s does not run on %s, %s, %s", name, on.OS, on.CPU, on.Libc)
	}
	p = Package{Path: path, Name: name, Version: e.Version, InstallScript: e.Scripts, Optional: e.Optional}
	if p.URL, err = tarballURL(e.Resolved, registry, from); err == nil {
		p.SHA512, err = sha512Of(e.Integrity)
	}
	return p, true, err
}

// fits reports whether a package is for a platform, as npm judges it.
func (e lockEntry) fits(on Platform) bool {
	return e.OS.fit(on.OS) && e.CPU.fit(on.CPU) && e.Libc.fit(on.Libc)
}

// fit reports whether a word is in a list, or not in one of negations.
func (w words) fit(word string) bool {
	if len(w) == 0 || len(w) == 1 && w[0] == "any" {
		return true
	}
	if slices.Contains(w, "!"+word) {
		return false
	}
	negations := 0
	for _, other := range w {
		if strings.HasPrefix(other, "!") {
			negations++
		}
	}
	return negations == len(w) || slices.Contains(w, word)
}

// npmRegistry is what a lock names when npm has asked another registry, a mirror.
const npmRegistry = "https://registry.npmjs.org/"

// tarballURL checks where a tarball comes from.
func tarballURL(resolved, registry string, from fetch.Origins) (string, error) {
	scheme, _, _ := strings.Cut(resolved, ":")
	switch {
	case resolved == "":
		return "", errors.New("it does not say where it comes from")
	case len(resolved) > maxText:
		return "", fmt.Errorf("its address has more than %d bytes", maxText)
	case scheme == "git" || strings.HasPrefix(scheme, "git+") || scheme == "github" || scheme == "gitlab" || scheme == "bitbucket":
		return "", errors.New("it comes from git, which has no checksum of a registry")
	case scheme == "file":
		return "", errors.New("it comes from a folder or file, not from a registry")
	}
	if rest, found := strings.CutPrefix(resolved, npmRegistry); found {
		resolved = strings.TrimSuffix(registry, "/") + "/" + rest
	}
	u, err := url.Parse(resolved)
	if err != nil {
		return "", errors.New("its address is not understood")
	}
	return resolved, from.Check(u)
}

// sha512Of returns the SHA-512 of an integrity, in hexadecimal digits. Others beside it do
// not matter, since what has this one is the file.
func sha512Of(integrity string) (sum string, err error) {
	if len(integrity) > maxText {
		return "", fmt.Errorf("its integrity has more than %d bytes", maxText)
	}
	for one := range strings.FieldsSeq(integrity) {
		encoded, found := strings.CutPrefix(one, "sha512-")
		if !found {
			continue
		}
		encoded, _, _ = strings.Cut(encoded, "?")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(raw) != 64 || sum != "" {
			return "", errors.New("its integrity is not one SHA-512")
		}
		sum = hex.EncodeToString(raw)
	}
	if sum == "" {
		return "", errors.New("its integrity has no SHA-512")
	}
	return sum, nil
}
