package requirement

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
)

// A Version is one of a package or of Python.
type Version struct {
	text    string // as it was written
	epoch   *big.Int
	release []*big.Int
	pre     string // a, b, rc, or "" for none
	preN    *big.Int
	post    *big.Int // nil for none
	dev     *big.Int // nil for none
	local   []string
}

// maxVersion bounds a version, in bytes.
const maxVersion = 200

// versionForm is PEP 440's own regular expression (appendix B).
var versionForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^v?(?:(\d+)!)?(\d+(?:\.\d+)*)` +
		`(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?` +
		`(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?` +
		`(?:[-_.]?(dev)[-_.]?(\d*))?` +
		`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)
})

var preNames = map[string]string{"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

// ParseVersion reads a version.
func ParseVersion(s string) (v Version, err error) {
	s = strings.TrimSpace(s)
	m := versionForm().FindStringSubmatch(s)
	if len(s) > maxVersion || m == nil {
		return v, fmt.Errorf("%q is not a version", text.Bound(s, 80))
	}
	v = Version{text: s, epoch: number(m[1]), pre: strings.ToLower(m[3])}
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	if name := preNames[v.pre]; name != "" {
		v.pre = name
	}
	v.preN = number(m[4])
	if m[5] != "" || m[6] != "" {
		v.post = number(m[5] + m[7])
	}
	if m[8] != "" {
		v.dev = number(m[9])
	}
	if m[10] != "" {
		v.local = strings.FieldsFunc(strings.ToLower(m[10]), func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	}
	return v, nil
}

// number reads digits; none are 0.
func number(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

func (v Version) String() string { return v.text }

// Same reports whether two texts were one version, with their local parts.
func (v Version) Same(w Version) bool { return v.compare(w) == 0 && slices.Equal(v.local, w.local) }

// compare orders versions as PEP 440 does, without their local parts.
func (v Version) compare(w Version) int {
	if c := cmp.Or(v.epoch.Cmp(w.epoch), compareReleases(v.release, w.release)); c != 0 {
		return c
	}
	return cmp.Or(
		// 1.0.dev1 < 1.0a1 < 1.0 < 1.0.post1
		cmp.Compare(v.stage(), w.stage()),
		v.preN.Cmp(w.preN),
		comparePart(v.post, w.post, -1),
		comparePart(v.dev, w.dev, 1),
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
	case v.dev != nil && v.post == nil:
		return 0
	}
	return 4
}

// comparePart compares parts that may be missing; a missing one is without.
func comparePart(a, b *big.Int, without int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return without
	case b == nil:
		return -without
	}
	return a.Cmp(b)
}

// compareReleases compares lists of numbers; missing numbers are 0.
func compareReleases(a, b []*big.Int) int {
	zero := new(big.Int)
	for i := range max(len(a), len(b)) {
		x, y := zero, zero
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if c := x.Cmp(y); c != 0 {
			return c
		}
	}
	return 0
}

func sameRelease(v, w Version) bool {
	return v.epoch.Cmp(w.epoch) == 0 && compareReleases(v.release, w.release) == 0
}

func (v Version) isPre() bool { return v.pre != "" || v.dev != nil }

// beginsWith reports whether v is one of w.*.
func (v Version) beginsWith(w Version) bool {
	if v.epoch.Cmp(w.epoch) != 0 {
		return false
	}
	parts := slices.Clone(v.release)
	for len(parts) < len(w.release) {
		parts = append(parts, new(big.Int))
	}
	if compareReleases(parts[:len(w.release)], w.release) != 0 {
		return false
	}
	if w.pre == "" {
		return true
	}
	return compareReleases(v.release, w.release) == 0 && v.pre == w.pre && v.preN.Cmp(w.preN) == 0
}
