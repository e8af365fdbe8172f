package main

import (
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	tests := []struct{ source, described, python, semver, debian string }{
		{"0.1.0", "v0.1.0-0-g3a6d055e", "0.1.0", "0.1.0", "0.1.0"},
		{"1.20.3-rc.1", "v1.20.3-rc.1-0-g3a6d055e", "1.20.3rc1", "1.20.3-rc.1", "1.20.3~rc.1"},
		{"1.0.0-alpha.2", "v1.0.0-alpha.2-0-g3a6d055e", "1.0.0a2", "1.0.0-alpha.2", "1.0.0~alpha.2"},
		{"1.0.0-beta.2", "v1.0.0-beta.2-0-g3a6d055e", "1.0.0b2", "1.0.0-beta.2", "1.0.0~beta.2"},
		// Between releases, with and without a tag, and where the version was not raised.
		{"0.2.0-dev", "v0.1.0-5-g3a6d055e", "0.2.0.dev5+g3a6d055e", "0.2.0-dev.5.g3a6d055e", "0.2.0~dev5+g3a6d055e"},
		{"0.1.0", "none-1234-g3a6d055e", "0.1.0.dev1234+g3a6d055e", "0.1.0-dev.1234.g3a6d055e", "0.1.0~dev1234+g3a6d055e"},
		{"0.1.0", "v0.1.0-5-g3a6d055e", "0.1.1.dev5+g3a6d055e", "0.1.1-dev.5.g3a6d055e", "0.1.1~dev5+g3a6d055e"},
		{"0.1.9", "v0.1.9-0-g3a6d055e-dirty", "0.1.10.dev0+g3a6d055e.dirty", "0.1.10-dev.0.g3a6d055e.dirty", "0.1.10~dev0+g3a6d055e.dirty"},
		{"0.2.0", "v0.1.0-7-g3a6d055e", "0.2.0.dev7+g3a6d055e", "0.2.0-dev.7.g3a6d055e", "0.2.0~dev7+g3a6d055e"},
		{"0.2.0-rc.1", "v0.2.0-rc.1-3-g3a6d055e", "0.2.0rc2.dev3+g3a6d055e", "0.2.0-rc.1.dev.3.g3a6d055e", "0.2.0~rc.2~dev3+g3a6d055e"},
	}
	for _, tt := range tests {
		v, err := parseVersion(tt.source, tt.described)
		if err != nil {
			t.Errorf("%s, %s: %v", tt.source, tt.described, err)
			continue
		}
		if v.python() != tt.python || v.semver() != tt.semver || v.debian() != tt.debian {
			t.Errorf("%s, %s: %s, %s, %s; want %s, %s, %s", tt.source, tt.described,
				v.python(), v.semver(), v.debian(), tt.python, tt.semver, tt.debian)
		}
	}
}

func TestVersionsThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ source, described, want string }{
		{"0.1.0", "v0.2.0-0-g3a6d055e", "the tag is v0.2.0, but the version"},
		{"0.2.0-dev", "v0.2.0-0-g3a6d055e", "the tag is v0.2.0, but the version"},
		{"0.1.0", "3a6d055e", "is not what git describe"},
		{"0.1", "v0.1-0-g3a6d055e", "is not a version"},
		{"01.0.0", "none-1-g3a6d055e", "is not a version"},
		{"1.0.0-preview", "none-1-g3a6d055e", "is not a version"},
		{"", "none-1-g3a6d055e", "is not a version"},
	} {
		if _, err := parseVersion(tt.source, tt.described); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %q: %v, want an error with %q", tt.source, tt.described, err, tt.want)
		}
	}
}

// TestVersionsSort compares with what dpkg says, where that is installed.
func TestVersionsSort(t *testing.T) {
	var order []version
	for _, v := range [][2]string{
		{"0.1.0", "none-9-gabc"},
		{"0.1.0", "none-10-gabc"},
		{"0.1.0-rc.1", "v0.1.0-rc.1-0-gabc"},
		{"0.1.0-rc.1", "v0.1.0-rc.1-2-gabc"},
		{"0.1.0-rc.2", "v0.1.0-rc.2-0-gabc"},
		{"0.1.0", "v0.1.0-0-gabc"},
		{"0.1.0", "v0.1.0-1-gabc"},
		{"0.1.1", "v0.1.1-0-gabc"},
		{"0.2.0-dev", "v0.1.1-3-gabc"},
		{"0.2.0", "v0.2.0-0-gabc"},
		{"0.10.0", "v0.10.0-0-gabc"},
	} {
		parsed, err := parseVersion(v[0], v[1])
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, parsed)
	}
	for i := range len(order) - 1 {
		a, b := order[i], order[i+1]
		if !debianLess(t, a.debian(), b.debian()) {
			t.Errorf("dpkg: %s is not before %s", a.debian(), b.debian())
		}
		if !semverLess(a.semver(), b.semver()) {
			t.Errorf("npm: %s is not before %s", a.semver(), b.semver())
		}
		if !pythonLess(t, a.python(), b.python()) {
			t.Errorf("pip: %s is not before %s", a.python(), b.python())
		}
	}
}
