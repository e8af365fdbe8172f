package packages

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// choose reduces each package to the wheel that Python's tools would install. The resolver
// lists only wheels that fit the image; the most specific one is best (packaging.python.org,
// "Platform compatibility tags"). Facts that every check of the lock needs are computed here
// once.
func (l *Lock) choose() {
	for i, p := range l.packages {
		w := p.best()
		w.Name = w.file()
		w.address, _ = url.Parse(w.URL)
		l.packages[i].Wheels = []lockedWheel{w}
	}
}

func (p lockedPackage) best() lockedWheel {
	return slices.MaxFunc(p.Wheels, func(a, b lockedWheel) int { return compareTags(a.file(), b.file()) })
}

func compareTags(a, b string) int {
	x, y := rankOf(a), rankOf(b)
	return cmp.Or(cmp.Compare(x.python, y.python), cmp.Compare(x.abi, y.abi), cmp.Compare(x.version, y.version), cmp.Compare(x.platform, y.platform), cmp.Compare(x.build, y.build), cmp.Compare(a, b))
}

// A rank orders wheels: a higher one is more specific.
type rank struct{ python, abi, version, platform, build int }

// rankOf reads the tags at the end of a wheel's name, NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl.
func rankOf(file string) (r rank) {
	parts := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
	if len(parts) < 5 {
		return r
	}
	tags := parts[len(parts)-3:]
	if len(parts) > 5 {
		r.build, _ = strconv.Atoi(parts[2])
	}
	for python := range strings.SplitSeq(tags[0], ".") {
		digits := strings.TrimLeft(python, "abcdefghijklmnopqrstuvwxyz")
		if strings.HasPrefix(python, "cp") {
			r.python = 1
		}
		if len(digits) > 1 {
			minor, _ := strconv.Atoi(digits[1:]) // of 311
			r.version = max(r.version, minor)
		}
	}
	switch tags[1] {
	case "none":
	case "abi3":
		r.abi = 1
	default:
		r.abi = 2
	}
	for platform := range strings.SplitSeq(tags[2], ".") {
		r.platform = max(r.platform, platformRank(platform))
	}
	if r.abi > 0 || r.platform > 0 { // a compiled wheel goes before one that is for CPython only
		r.python += 2
	}
	return r
}

// olderManylinux are the names that had numbers of their own (PEP 600).
var olderManylinux = map[string]string{"manylinux1": "manylinux_2_5", "manylinux2010": "manylinux_2_12", "manylinux2014": "manylinux_2_17"}

// platformRank is higher if a platform needs a newer C library.
func platformRank(platform string) int {
	if platform == "any" {
		return 0
	}
	for old, now := range olderManylinux {
		if rest, ok := strings.CutPrefix(platform, old+"_"); ok {
			platform = now + "_" + rest
		}
	}
	parts := strings.SplitN(platform, "_", 4) // manylinux_2_17_x86_64
	if len(parts) < 4 {
		return 1
	}
	minor, _ := strconv.Atoi(parts[2])
	return 2 + minor
}
