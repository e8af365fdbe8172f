package requirement

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRequirementsAreWrittenInOneForm(t *testing.T) {
	for line, want := range map[string]string{
		"pandas":                               "pandas",
		" Pandas >= 2 , <3 ":                   "pandas<3,>=2",
		"ruamel.yaml_Jinja2":                   "ruamel-yaml-jinja2",
		"httpx[http2, Brotli]~=0.27":           "httpx[brotli,http2]~=0.27",
		"requests ( >=2.8.1 ) ; extra == 'x'":  "requests>=2.8.1 ; extra == 'x'",
		"requests (>=2.8.1)":                   "requests>=2.8.1",
		"x==1.*; python_version<'3.12'":        "x==1.* ; python_version < '3.12'",
		`a; (os_name == "nt") or extra == 'x'`: `a ; ( os_name == "nt" ) or extra == 'x'`,
		"torch==2.1.0+cpu":                     "torch==2.1.0+cpu",
		"a[]":                                  "a",
	} {
		if r, err := Parse(line); err != nil || r.String() != want {
			t.Errorf("%q: %q, %v; want %q", line, r, err, want)
		}
	}
}

func TestWhatIsNoRequirementOfAnIndexIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "empty",
		"-r other.txt":                     "options",
		"--index-url=https://evil":         "options",
		"./local":                          "paths",
		"/abs/x.whl":                       "paths",
		"https://evil/x.whl":               "paths and addresses",
		"x @ https://evil/x.whl":           "after @",
		"x@file:///etc/passwd":             "after @",
		"x\n-r y":                          "one line",
		"x\r--pre":                         "one line",
		"x --hash=sha256:00":               "not understood",
		"x>=1 --pre":                       "not a version",
		"x>=1 y; extra == 'x'":             "not a version",
		"x # comment":                      "not understood",
		"x; python_version > '3' --hash=x": "marker",
		"x; python_version > '3' # c":      "marker",
		"x; import_os == '1'":              "marker",
		"x;":                               "marker",
		"x>=":                              "not a version",
		"x==1.2;python_version=='\\'":      "marker",
		"pänd":                             "ASCII",
		"x[a":                              "no ]",
		"x[a,,b]":                          "extra",
		"x[a b]":                           "name of an extra",
		"(x":                               "name of a package",
		"x (>=1":                           "no )",
		"x>=1+local":                       "local version",
		"x~=2":                             "two numbers",
		"x>1.*":                            "not a version",
		"$(id)":                            "name of a package",
		strings.Repeat("x", 2000):          "most is",
	} {
		if r, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q, %v; want %q", line, r, err, want)
		}
	}
}

// TestVersionsAreOrdered has the order that PEP 440 gives as an example, and more.
func TestVersionsAreOrdered(t *testing.T) {
	order := []string{
		"0.9", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2", "1.0b2.post345.dev456",
		"1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0.post456.dev34", "1.0.post456", "1.0.15", "1.1.dev1", "1.10", "1!0.1",
	}
	for i, a := range order {
		for j, b := range order {
			if got, want := version(t, a).compare(version(t, b)), sign(i-j); got != want {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
	for a, b := range map[string]string{"1.0": "1", "v1.0-1": "1.0.post1", "1.0ALPHA1": "1.0a1", "1.0c1": "1.0rc1", "1.0.r4": "1.0.post4", " 1.0 ": "1.0"} {
		if version(t, a).compare(version(t, b)) != 0 {
			t.Errorf("%s is not %s", a, b)
		}
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func version(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSpecifiersAllowVersions(t *testing.T) {
	for _, c := range []struct{ specifier, yes, no string }{
		{"", "1 2.0a1", ""},
		{">=2", "2 2.0 3.1", "1.9 2.0rc1"},
		{"<=2", "2 1.9 2.0rc1", "2.0.1 3"},
		{">=3.11,<4", "3.11 3.13.1", "3.10.9 4.0 4.0.dev1"},
		{"<3.1", "3.0 3.0.dev0", "3.1 3.1.dev0 3.1rc1"},
		{"<3.1rc1", "3.1b1", "3.1rc1"},
		{">1.7", "1.8 1.7.1", "1.7 1.7.post1 1.7+local"},
		{">1.7.post2", "1.7.post3", "1.7.post2"},
		{"==1.1", "1.1 1.1.0 1.1+cpu", "1.1.post1 1.1a1"},
		{"==1.1+cpu", "1.1+cpu 1.1+CPU", "1.1 1.1+cuda"},
		{"==1.1+a.b", "1.1+A_b 1.1+a-b", "1.1+ab 1.1+a"},
		{"==1.1.*", "1.1 1.1.5 1.1a1 1.1.post1", "1.10 1.2"},
		{"!=1.1.*", "1.10", "1.1.2"},
		{"~=2.2", "2.2 2.9", "2.1 3.0"},
		{"~=1.4.5", "1.4.5 1.4.9", "1.4.4 1.5"},
		{"~=2.2rc1", "2.2rc1 2.9", "2.2b1 3"},
		{"===1.0+x", "1.0+X", "1.0"},
		{"==1!2", "1!2.0", "2.0"},
		{"==3.11.*", "3.11", "3.1"},
		{"==1!1.*", "1!1.2", "1.2"},
		{"==1.1a1.*", "1.1a1", "1.1a2 1.1"},
		{">=2,", "2", "1"},
	} {
		s, err := ParseSpecifier(c.specifier)
		if err != nil {
			t.Fatal(err)
		}
		for v := range strings.FieldsSeq(c.yes) {
			if !s.Allows(version(t, v)) {
				t.Errorf("%s does not allow %s", c.specifier, v)
			}
		}
		for v := range strings.FieldsSeq(c.no) {
			if s.Allows(version(t, v)) {
				t.Errorf("%s allows %s", c.specifier, v)
			}
		}
	}
}

// TestFieldsAreRead: fields of a header, a lock or an index are read as Parse and
// ParseSpecifier read them, and keep their type's text.
func TestFieldsAreRead(t *testing.T) {
	var read struct {
		Package Requirement
		Python  Specifier
	}
	if err := json.Unmarshal([]byte(`{"Package": "Pandas >= 2", "Python": ">=3.11"}`), &read); err != nil || read.Package.String() != "pandas>=2" || !read.Python.Allows(version(t, "3.11")) || read.Python.Allows(version(t, "3.10")) {
		t.Errorf("%v, %v", read, err)
	}
	for text, want := range map[string]string{`{"Package": "./local"}`: `"./local": `, `{"Python": "3"}`: ">=2,<3"} {
		if err := json.Unmarshal([]byte(text), &read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	if v := version(t, "1.0+CPU"); v.String() != "1.0+CPU" || !v.Same(version(t, "1+cpu")) || v.Same(version(t, "1.0")) {
		t.Errorf("%v is not the same version written otherwise, or is one without its local part", v)
	}
}

func TestWhatIsNoVersionIsRefused(t *testing.T) {
	for _, s := range []string{"", "x", "1.", "1.0-", "1.0+", "1.0+a..b", "1 2", "1.0.foo", strings.Repeat("1", 300)} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%.20q: got %v", s, v)
		}
	}
}

func FuzzRequirement(f *testing.F) {
	f.Add("pandas[a]>=2,<3 ; python_version < '3'")
	f.Fuzz(func(t *testing.T, line string) {
		r, err := Parse(line)
		if err != nil {
			return
		}
		again, err := Parse(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%q is written %q, and that %q, %v", line, r, again, err)
		}
		if s := r.String(); strings.ContainsAny(s, "\n\r#\\") || strings.Contains(s, " -") || strings.HasPrefix(s, "-") {
			t.Errorf("%q is written %q", line, s)
		}
	})
}
