package requirement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// A Version is one of a package or of Python.
type Version struct {
	text    string // as it was written
	epoch   number
	release []number
	pre     string // a, b, rc, or "" for none
	preN    number
	post    number // "" for none
	dev     number // "" for none
	local   []string
}

// maxVersion bounds a version, in bytes.
const maxVersion = 200

// versionForm is PEP 440's own regular expression (appendix B).
var versionForm = text.Pattern(`(?i)^v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
	`(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?` +
	`(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?` +
	`(?:[-_.]?(dev)[-_.]?(\d*))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

var preNames = map[string]string{"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

// ParseVersion reads a version.
func ParseVersion(s string) (v Version, err error) {
	s = strings.TrimSpace(s)
	m := versionForm().FindStringSubmatch(s)
	if len(s) > maxVersion || m == nil {
		return v, fmt.Errorf("%q is not a version", text.Bound(s, 80))
	}
	pre := strings.ToLower(m[3])
	v = Version{text: s, epoch: numberOf(m[1]), pre: cmp.Or(preNames[pre], pre), preN: numberOf(m[4])}
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, numberOf(part))
	}
	if m[5] != "" || m[6] != "" {
		v.post = numberOf(m[5] + m[7])
	}
	if m[8] != "" {
		v.dev = numberOf(m[9])
	}
	if m[10] != "" {
		v.local = strings.FieldsFunc(strings.ToLower(m[10]), func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	}
	return v, nil
}

// A number is a decimal one of any size, without zeros before it.
type number string

// numberOf reads digits; none are 0.
func numberOf(digits string) number { return number(cmp.Or(strings.TrimLeft(digits, "0"), "0")) }

// compare orders numbers; none comes first.
func (a number) compare(b number) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func (v Version) String() string { return v.text }

// Same reports whether two texts were one version, with their local parts.
func (v Version) Same(w Version) bool { return v.compare(w) == 0 && slices.Equal(v.local, w.local) }

// compare orders versions as PEP 440 does, without their local parts.
func (v Version) compare(w Version) int {
	return cmp.Or(
		v.epoch.compare(w.epoch),
		compareReleases(v.release, w.release),
		// 1.0.dev1 < 1.0a1 < 1.0 < 1.0.post1
		cmp.Compare(v.stage(), w.stage()),
		v.preN.compare(w.preN),
		v.post.compare(w.post),
		compareDev(v.dev, w.dev),
	)
}

// stage orders what a version of one release is before its number counts.
func (v Version) stage() int {
	switch {
	case v.pre == "a":
		return 1
	case v.pre == "b":
		return 2
	case v.pre == "rc":
		return 3
	case v.dev != "" && v.post == "":
		return 0
	}
	return 4
}

// compareDev orders numbers of development releases, which come before what they develop.
func compareDev(a, b number) int {
	if a == "" || b == "" {
		return b.compare(a)
	}
	return a.compare(b)
}

// compareReleases compares lists of numbers; missing numbers are 0.
func compareReleases(a, b []number) int {
	significant := func(all []number) []number {
		for len(all) > 0 && all[len(all)-1] == "0" {
			all = all[:len(all)-1]
		}
		return all
	}
	return slices.CompareFunc(significant(a), significant(b), number.compare)
}

func sameRelease(v, w Version) bool {
	return v.epoch == w.epoch && compareReleases(v.release, w.release) == 0
}

func (v Version) isPre() bool { return v.pre != "" || v.dev != "" }

// beginsWith reports whether v is one of w.*.
func (v Version) beginsWith(w Version) bool {
	if v.epoch != w.epoch {
		return false
	}
	padded := slices.Concat(v.release, slices.Repeat([]number{"0"}, len(w.release)))
	if compareReleases(padded[:len(w.release)], w.release) != 0 {
		return false
	}
	if w.pre == "" {
		return true
	}
	return compareReleases(v.release, w.release) == 0 && v.pre == w.pre && v.preN == w.preN
}
