package npm

import (
	"maps"
	"slices"
	"strings"
)

// A Change is a package in which two locks differ.
type Change struct {
	Name string
	Old  string // its version before, or "" if it was added
	New  string // its version now, or "" if it was removed; like Old if only its contents differ
}

// Diff returns in what two locks differ, ordered by name. Where a lock has several versions
// of a package, those that it lost and those that it got are paired in their order.
func Diff(before, after *Tree) (changes []Change) {
	was, is := before.byName(), after.byName()
	names := map[string]bool{}
	for _, of := range []map[string]map[string]string{was, is} {
		for name := range of {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		lost, got := without(was[name], is[name]), without(is[name], was[name])
		for i := range max(len(lost), len(got)) {
			c := Change{Name: name}
			if i < len(lost) {
				c.Old = lost[i]
			}
			if i < len(got) {
				c.New = got[i]
			}
			changes = append(changes, c)
		}
	}
	return changes
}

// byName returns the versions of each package, with their digests.
func (t *Tree) byName() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, p := range t.packages {
		if all[p.Name] == nil {
			all[p.Name] = map[string]string{}
		}
		all[p.Name][p.Version] = p.SHA512
	}
	return all
}

// without returns the versions that others lack, or have with another digest.
func without(versions, others map[string]string) (left []string) {
	for version, sum := range versions {
		if others[version] != sum {
			left = append(left, version)
		}
	}
	slices.SortFunc(left, strings.Compare)
	return left
}
