package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/toml"
)

// grantPackages returns what a script gets that names these packages, under the section [packages].
func grantPackages(t *testing.T, section string, names ...string) (*PackageGrant, error) {
	t.Helper()
	rules, err := packageRulesOf(t, section)
	if err != nil {
		t.Fatal(err)
	}
	return rules.Grant(wanted(t, names...), "policy.toml")
}

func packageRulesOf(t *testing.T, section string) (*packageRules, error) {
	t.Helper()
	f := policyFile{Packages: defaultPackages()}
	err := toml.Unmarshal(t.Context(), []byte("[packages]\n"+section), &f)
	return &f.Packages, err
}

func wanted(t *testing.T, lines ...string) (all []requirement.Requirement) {
	t.Helper()
	for _, line := range lines {
		r, err := requirement.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestPackagesThatAScriptNames(t *testing.T) {
	for _, c := range []struct{ policy, name, want string }{
		{"", "pandas", ""},
		{`allow = "any"`, "pandas", ""},
		{`allow = "none"`, "pandas", `policy policy.toml: the package "pandas" is not allowed: add it to [packages] allow`},
		{`allow = ["Ruamel_YAML", "numpy>=2"]`, "ruamel.yaml", ""},
		{`allow = ["pandas", "numpy>=2"]`, "NumPy<3", ""},
		{`allow = ["pandas"]`, "numpy", `add it to [packages] allow`},
		{`allow = []`, "numpy", `add it to [packages] allow`},
		{`deny = "Evil.Package"`, "evil-package>=1", `[packages] deny = "evil-package"`},
		{`deny = "evil<2"`, "evil>=1", ""}, // the resolver may find a version that is not denied
	} {
		_, err := grantPackages(t, c.policy, c.name)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: got %v, want %q", c.policy, c.name, err, c.want)
		}
	}
}

func TestPackagesThatWereChosen(t *testing.T) {
	g, err := grantPackages(t, "allow = ['pandas', 'numpy>=2']\ndeny = ['evil', 'urllib3<2']", "pandas")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Constraints, []string{"numpy>=2"}) {
		t.Errorf("constraints: %q", g.Constraints)
	}
	for pkg, want := range map[string]string{
		"pandas 2.1":     "",
		"six 1.17":       "", // allow bounds what a script names
		"numpy 2.0":      "",
		"NumPy 1.26":     `[packages] allow = "numpy>=2"`,
		"Evil 1":         `[packages] deny = "evil"`,
		"urllib3 1.26.4": `[packages] deny = "urllib3<2"`,
		"urllib3 2.0":    "",
		"six x":          "not a version",
		"../x 1":         "not the name",
	} {
		name, version, _ := strings.Cut(pkg, " ")
		if err := g.Check(name, version); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pkg, err, want)
		}
	}
}

func TestPackageSettings(t *testing.T) {
	const all = `index = "https://pypi.example/simple/"
excludeNewer = "36h"
maxBytes = "2GB"
maxCount = 10
maxTime = "90s"
files = ["Files.example", "other.example:8443"]
preload = ["pandas", "matplotlib.pyplot"]`
	g, err := grantPackages(t, all)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Preload, []string{"pandas", "matplotlib.pyplot"}) {
		t.Errorf("preload: %q", g.Preload)
	}
	if g.Index != "https://pypi.example/simple" || g.ExcludeNewer != 36*time.Hour || g.MaxBytes != 2e9 || g.MaxCount != 10 || g.MaxTime != 90*time.Second ||
		!slices.Equal(g.Files, []string{"files.example", "other.example:8443"}) {
		t.Errorf("got %+v", g)
	}
	g, _ = grantPackages(t, "")
	if g.Index != DefaultIndex || g.ExcludeNewer != 72*time.Hour || g.MaxBytes != 500e6 || len(g.Files) != 1 || g.Preload != nil {
		t.Errorf("by default: %+v", g)
	}
	// Another index may have no upload times: then nothing would be old enough.
	g, _ = grantPackages(t, "index = 'https://pypi.example/simple'")
	if g.ExcludeNewer != 0 || g.Files != nil {
		t.Errorf("of another index: %+v", g)
	}
	for period, want := range map[string]time.Duration{"1 day": day, "2d": 2 * day, "3 weeks": 21 * day, "65535w": maxPeriod / week * week, "36h": 36 * time.Hour} {
		if g, err := grantPackages(t, "excludeNewer = '"+period+"'"); err != nil || g.ExcludeNewer != want {
			t.Errorf("%s: %+v, %v", period, g, err)
		}
	}
	g, _ = grantPackages(t, "excludeNewer = 0")
	if g.ExcludeNewer != 0 {
		t.Errorf("switched off: %+v", g)
	}
}

func TestCredentialOfAnIndex(t *testing.T) {
	const section = "index = 'https://x.example/simple'\ncredential = { user = '${env:TEST_INDEX_USER}', password = 'pre-${env:TEST_INDEX_TOKEN}' }"
	if _, err := grantPackages(t, section); err == nil || !strings.Contains(err.Error(), "the variable TEST_INDEX_USER is not set") {
		t.Errorf("without variables: %v", err)
	}
	t.Setenv("TEST_INDEX_USER", "me")
	if g, err := grantPackages(t, section); err == nil || !strings.Contains(err.Error(), "the password: the variable TEST_INDEX_TOKEN is not set") {
		t.Errorf("without a password: %+v, %v", g, err)
	}
	t.Setenv("TEST_INDEX_TOKEN", "secret")
	g, err := grantPackages(t, section)
	if err != nil {
		t.Fatal(err)
	}
	const encoded = "bWU6cHJlLXNlY3JldA=="
	if c := g.Credential; c.Authorization != "Basic "+encoded || !slices.Equal(c.Secrets, []string{encoded, "pre-secret"}) {
		t.Errorf("got %+v", c)
	}
	t.Setenv("TEST_INDEX_USER", "a:b")
	if _, err := grantPackages(t, section); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a colon: %v", err)
	}
}

func TestPackageSettingsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		`alow = "any"`:                                "there is no such key; the keys are allow, deny,",
		`allow = "some"`:                              `"any", "none", or a list`,
		`allow = ["x @ https://evil"]`:                "after @",
		`allow = ["x[a]"]`:                            "a name and perhaps versions",
		`allow = ["x>1", "X<3"]`:                      "twice",
		`deny = 3`:                                    "must be a string or a list",
		`index = "pypi.org"`:                          "not an address",
		`index = "http://pypi.org/simple"`:            "https://",
		`index = "https://u:p@pypi.org/simple"`:       "password",
		`credential = { user = "u", password = "p" }`: "an index of your own",
		"index = 'https://x.example/simple'\ncredential = { user = 'u' }": "a user and a password",
		"index = 'https://x.example/simple'\ncredential = 'u:p'":          "must be a table",
		`index = "https://pypi.org/simple?x"`:                             "not an address",
		`index = "file:///x"`:                                             "not an address",
		`excludeNewer = "soon"`:                                           `not a time such as "3 days"`,
		`excludeNewer = 3`:                                                "not a number",
		`maxBytes = "lots"`:                                               "number of bytes",
		`maxBytes = 0`:                                                    "number of bytes",
		`deny = ["x; os_name == 'nt'"]`:                                   "a name and perhaps versions",
		`excludeNewer = "100000h"`:                                        "not a time such as",
		`maxCount = 1000001`:                                              "a number of packages from 1 to",
		"index = 'https://x.example/simple'\ncredential = { password = 'p' }": "a user and a password",
		`maxCount = 0`:                            "a number of packages from 1 to",
		`maxTime = "0s"`:                          "more than 0",
		`maxTime = 0`:                             "more than 0",
		`files = ["*.example.org"]`:               "a * is not supported",
		`files = ["https://x"]`:                   "write the host alone",
		`preload = ["import os; os.system('x')"]`: "not the name of a module",
	} {
		_, err := packageRulesOf(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "[packages] ") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestPackagesAsk(t *testing.T) {
	for _, tt := range []struct {
		policy, name, want string // a reason, or an error
		denied             bool
	}{
		{`ask = "any"`, "pandas", `[packages] ask = "any": the code wants the package "pandas"`, false},
		{"ask = 'any'\nallow = ['pandas']", "pandas", "", false},
		{"ask = 'any'\nallow = ['pandas']", "numpy", `ask = "any"`, false},
		{"ask = 'any'\nallow = 'none'", "numpy", `ask = "any"`, false},
		{"ask = 'any'\ndeny = 'numpy'", "numpy", `deny = "numpy"`, true},
		{`ask = ["Num_Py>=2"]`, "num-py", `ask = "num-py>=2"`, false},
		{`ask = ["numpy>=2"]`, "pandas", "", false}, // allow is "any" unless it is written
		{"ask = ['numpy']\nallow = 'none'", "pandas", "add it to [packages] allow", true},
		{"ask = ['numpy']\nallow = ['numpy']", "numpy", "", false},
		{`ask = []`, "pandas", "", false},
	} {
		g, err := grantPackages(t, tt.policy, tt.name)
		if tt.denied {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %s: %v; want %q", tt.policy, tt.name, err, tt.want)
			}
			continue
		}
		if err != nil || (len(g.Ask) == 0) != (tt.want == "") || len(g.Ask) > 1 || !strings.Contains(strings.Join(g.Ask, ""), tt.want) {
			t.Errorf("%s: %s: %+v, %v; want %q", tt.policy, tt.name, g, err, tt.want)
		}
	}
	g, err := grantPackages(t, "allow = ['pandas<3']\nask = ['pandas>=1', 'numpy>=2']", "numpy", "pandas")
	if err != nil || !slices.Equal(g.Constraints, []string{"pandas<3", "numpy>=2"}) || len(g.Ask) != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := g.Check("numpy", "1.26"); err == nil || !strings.Contains(err.Error(), `[packages] ask = "numpy>=2"`) {
		t.Error(err)
	}
	if err := g.Check("pandas", "0.9"); err != nil {
		t.Error(err)
	}
}

func TestPackagesThatTheFileNames(t *testing.T) {
	g, err := grantPackages(t, "allow = ['pandas', 'numpy>=2']\nask = ['scipy']")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"Pandas": true, "pandas>=1": false, "pandas[excel]": false, `pandas; os_name == "posix"`: false,
		"numpy": true, "numpy>=2": true, "numpy>=1": false, "scipy": false, "six": false,
	} {
		if got := g.Listed(wanted(t, line)[0]); got != want {
			t.Errorf("allow lists %s: %v", line, got)
		}
	}
	for name, want := range map[string]bool{"pandas": true, "NumPy": true, "scipy": true, "six": false, "../pandas": false} {
		if got := g.Names(name); got != want {
			t.Errorf("the file names %s: %v", name, got)
		}
	}
}

// TestZeroValuesGrantNoPackages: rules that were not read, and a grant that they have not made.
func TestZeroValuesGrantNoPackages(t *testing.T) {
	var rules packageRules
	for _, names := range [][]string{{"six"}, nil} {
		if g, err := rules.Grant(wanted(t, names...), "policy.toml"); !errors.Is(err, errNoPackages) {
			t.Errorf("%q: no rules grant %+v, %v", names, g, err)
		}
	}
	for name, g := range map[string]*PackageGrant{"nil": nil, "zero": {}} {
		if g.Check("six", "1.0") == nil || g.Listed(wanted(t, "six")[0]) || g.Names("six") {
			t.Errorf("a %s grant has packages", name)
		}
	}
}
