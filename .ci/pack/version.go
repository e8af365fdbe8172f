package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A version is what a package is the build of: a release, or commits on the way to one.
type version struct {
	release string // 0.1.0
	stage   string // alpha, beta or rc, or nothing
	number  int    // of the stage
	commits int    // since the last tag, or of all; -1 in a release
	commit  string // g3a6d055e, with .dirty after it if files were changed
}

// parseVersion returns the version of a build. source is the version in the source, with
// -dev after it between releases. described is what `git describe --long --dirty` says, or
// none-COMMITS-gCOMMIT where no tag is near.
func parseVersion(source, described string) (version, error) {
	m := regexp.MustCompile(`^(none|v.+)-(\d+)-(g[0-9a-f]+)(-dirty)?$`).FindStringSubmatch(described)
	if m == nil {
		return version{}, fmt.Errorf("%q is not what git describe --long prints", described)
	}
	next, between := strings.CutSuffix(source, "-dev")
	v, err := parseRelease(next)
	if err != nil {
		return version{}, err
	}
	tag := strings.TrimPrefix(m[1], "v")
	if m[2] == "0" && m[4] == "" && tag != "none" {
		if tag != source {
			return version{}, fmt.Errorf("the tag is v%s, but the version in cmd/toolcell/version.go is %q; correct that and move the tag", tag, source)
		}
		return v, nil
	}
	if tag == next && !between {
		v = v.next()
	}
	if v.commits, err = strconv.Atoi(m[2]); err != nil {
		return version{}, err
	}
	v.commit = m[3] + strings.ReplaceAll(m[4], "-", ".")
	return v, nil
}

// parseRelease reads a semantic version of the kinds that exist in every packaging system:
// 1.2.3, 1.2.3-rc.1.
func parseRelease(s string) (version, error) {
	m := regexp.MustCompile(`^((?:0|[1-9]\d{0,5})(?:\.(?:0|[1-9]\d{0,5})){2})(?:-(alpha|beta|rc)\.([1-9]\d{0,5}))?$`).FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("%q is not a version like 1.2.3 or 1.2.3-rc.1", s)
	}
	v := version{release: m[1], stage: m[2], commits: -1}
	v.number, _ = strconv.Atoi(m[3])
	return v, nil
}

// next returns the release that comes after v at the earliest.
func (v version) next() version {
	if v.stage != "" {
		v.number++
		return v
	}
	i := strings.LastIndexByte(v.release, '.') + 1
	patch, _ := strconv.Atoi(v.release[i:])
	v.release = v.release[:i] + strconv.Itoa(patch+1)
	return v
}

// python returns v as PEP 440 has it.
func (v version) python() string {
	s := v.release
	if v.stage != "" {
		s += map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[v.stage] + strconv.Itoa(v.number)
	}
	if v.commits >= 0 {
		s += fmt.Sprintf(".dev%d+%s", v.commits, v.commit)
	}
	return s
}

// semver returns v as npm has it. It ignores what comes after a +, so the commit is part of
// the pre-release.
func (v version) semver() string {
	var parts []string
	if v.stage != "" {
		number := v.number
		if v.commits >= 0 {
			number-- // what is appended sorts after it
		}
		parts = append(parts, v.stage, strconv.Itoa(number))
	}
	if v.commits >= 0 {
		parts = append(parts, "dev", strconv.Itoa(v.commits), v.commit)
	}
	if len(parts) == 0 {
		return v.release
	}
	return v.release + "-" + strings.Join(parts, ".")
}

// debian returns v as dpkg and rpm have it: what follows a ~ sorts before what lacks it.
func (v version) debian() string {
	s := v.release
	if v.stage != "" {
		s += fmt.Sprintf("~%s.%d", v.stage, v.number)
	}
	if v.commits >= 0 {
		s += fmt.Sprintf("~dev%d+%s", v.commits, v.commit)
	}
	return s
}
