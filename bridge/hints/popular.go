package hints

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// popularText are names of packages on PyPI that many programs use. A name that is
// neither here nor in distributionsText may be a typo, or one that a model has made up: others
// publish harmful packages under such names, so no hint says to ask for them.
//
//go:embed popular.txt
var popularText string

// distributionsText has a line for each module that is imported under another name than its
// package has on PyPI, with that name. Names that pip takes for the same (PEP 503: case, and -
// for _) need no line.
//
//go:embed distributions.txt
var distributionsText string

// underOwnName are packages that are in distributions, and have a module of their own name too.
var underOwnName = map[string]bool{"attrs": true, "matplotlib": true, "pymongo": true, "pymupdf": true, "setuptools": true, "toolz": true}

// wellKnown are the packages that hints know, by their plain names, the modules at the top by
// which they are imported, with the package of each, and what distributionsText has.
var wellKnown = sync.OnceValue(func() (w struct{ packages, modules, distributions map[string]string }) {
	defer contain.Recover("reading the names of packages", nil) // then hints know of none
	w.packages, w.modules, w.distributions = map[string]string{}, map[string]string{}, map[string]string{}
	renamed := map[string]bool{}
	for line := range strings.Lines(distributionsText) {
		module, name, _ := strings.Cut(line, " ")
		name = strings.TrimSpace(name)
		w.distributions[module], w.packages[plainName(name)], renamed[plainName(name)] = name, name, true
		if !strings.Contains(module, ".") {
			w.modules[module] = name
		}
	}
	for name := range strings.FieldsSeq(popularText) {
		if w.packages[name] == "" {
			w.packages[name] = name
		}
		if !renamed[name] || underOwnName[name] {
			w.modules[strings.ReplaceAll(name, "-", "_")] = name
		}
	}
	return w
})

// Distribution returns the name under which a module can be installed: mostly its
// own, up to the first dot.
func Distribution(module string) string {
	for prefix := module; ; {
		if name := wellKnown().distributions[prefix]; name != "" {
			return name
		}
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return prefix
		}
		prefix = prefix[:dot]
	}
}

// plainName is the one form of a package's name (PEP 503).
func plainName(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' || c == '.' }), "-")
}

// IsWellKnown reports whether many programs use a package.
func IsWellKnown(name string) bool { return wellKnown().packages[plainName(name)] != "" }

// PackageLike returns the package that a name of none probably means: the one that is
// imported so, or one whose name differs by a typo. Without one it returns "".
func PackageLike(name string) string {
	for module, pkg := range wellKnown().distributions {
		if strings.EqualFold(module, strings.ReplaceAll(name, "-", "_")) {
			return pkg
		}
	}
	return wellKnown().packages[closest(plainName(name), wellKnown().packages)]
}

// moduleLike returns the module that a name of none probably means, and its package, or
// "".
func moduleLike(name string) (module, pkg string) {
	modules := wellKnown().modules
	if modules[name] != "" {
		return "", ""
	}
	for _, found := range slices.Sorted(maps.Keys(modules)) {
		if strings.EqualFold(found, name) {
			return found, modules[found]
		}
		// Of several modules of a package, the one that is called like it.
		if plain := plainName(modules[found]); plain == plainName(name) && (module == "" || plain == plainName(found)) {
			module = found
		}
	}
	if module != "" {
		return module, modules[module]
	}
	module = closest(name, modules)
	return module, modules[module]
}

// everyday are names that people give to modules of their own.
var everyday = map[string]bool{
	"common": true, "config": true, "core": true, "data": true, "helper": true, "helpers": true, "main": true, "model": true,
	"models": true, "plots": true, "script": true, "server": true, "test": true, "tests": true, "tools": true, "types": true, "utils": true,
}

// closest returns the name that differs from want by a typo: one letter, or two of
// a longer name.
func closest(want string, names map[string]string) (best string) {
	want = strings.ToLower(want)
	if len(want) < 5 || len(want) > 64 || everyday[want] {
		return ""
	}
	limit := 1
	if len(want) > 7 {
		limit = 2
	}
	for name := range names {
		if len(name)-len(want) > limit || len(want)-len(name) > limit {
			continue
		}
		distance := text.EditDistance(want, strings.ToLower(name))
		if distance < limit || distance == limit && (best == "" || name < best) {
			best, limit = name, distance
		}
	}
	return best
}
