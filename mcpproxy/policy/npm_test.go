package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// grantNPM returns what a server gets whose entry names these packages, under the section
// [packages.npm].
func grantNPM(t *testing.T, section string, names ...string) (*NPMGrant, error) {
	t.Helper()
	r, err := parseRules("[packages.npm]\n"+section, "policy.toml")
	if err != nil {
		t.Fatal(err)
	}
	return r.packages.NPM.Grant(names, "policy.toml")
}

func TestNPMPackagesThatAnEntryNames(t *testing.T) {
	const add = ` is not allowed: add it to [packages.npm] allow`
	for _, c := range []struct{ section, name, want string }{
		{"", "left-pad", ""},
		{"", "@scope/name", ""},
		{`allow = "any"`, "left-pad", ""},
		{`allow = "none"`, "left-pad", `policy policy.toml: the npm package "left-pad"` + add},
		{`allow = []`, "left-pad", add},
		{`allow = ["@modelcontextprotocol/*"]`, "@modelcontextprotocol/server-memory", ""},
		{`allow = ["@modelcontextprotocol/*"]`, "@modelcontextprotocol-x/server-memory", add},
		{`allow = ["@modelcontextprotocol/*"]`, "modelcontextprotocol", add},
		{`allow = ["@modelcontextprotocol/*", "mcp-remote"]`, "mcp-remote", ""},
		{`allow = ["mcp-remote"]`, "mcp-remote-x", add},
		{`allow = ["mcp-?"]`, "mcp-1", ""},
		{`allow = ["*"]`, "@scope/name", ""},
		{`allow = ["JSONStream"]`, "JSONStream", ""},
		{`allow = ["JSONStream"]`, "jsonstream", add}, // another package
		{`deny = "left-*"`, "left-pad", `policy policy.toml, [packages.npm] deny = "left-*": the npm package "left-pad" is not allowed`},
		{`deny = ["jsonstream"]`, "JSONStream", `deny = "jsonstream"`},
		{`deny = ["left-*"]`, "@scope/left-pad", ""},
		{"allow = ['left-pad']\ndeny = ['left-pad']", "left-pad", `deny = "left-pad"`},
		{"", "left-pad@1.2.3", "is not the name of an npm package"},
		{"", "../left-pad", "is not the name of an npm package"},
		{"", "https://example.com/x.tgz", "is not the name of an npm package"},
		{"", strings.Repeat("a", 215), "is not the name of an npm package"},
		{"", "", "is not the name of an npm package"},
	} {
		g, err := grantNPM(t, c.section, c.name)
		if c.want != "" {
			wantErr(t, err, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", c.section, c.name, err)
		} else if err := g.Check(c.name, "1.0.0"); err != nil {
			t.Errorf("%s: %s is named, but: %v", c.section, c.name, err)
		}
	}
}

// TestNPMPackagesThatWereChosen are bound by deny alone: allow is about what an entry names.
func TestNPMPackagesThatWereChosen(t *testing.T) {
	g, err := grantNPM(t, "allow = ['mcp-remote']\ndeny = ['@evil/*', 'Left-Pad']", "mcp-remote")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string]string{
		"mcp-remote 0.1.2":      "",
		"express 5.0.0-beta.1":  "",
		"@types/node 24.0.0+x":  "",
		"@evil/a 1.0.0":         `policy policy.toml, [packages.npm] deny = "@evil/*": the npm package "@evil/a 1.0.0" is not allowed`,
		"left-pad 1.0.0":        `deny = "Left-Pad"`,
		"express latest":        `"latest" is not a version`,
		"express ":              "is not a version",
		"express 1.0.0\n":       "is not a version",
		"../x 1.0.0":            "is not the name of an npm package",
		"@evil 1.0.0":           "is not the name of an npm package",
		"npm:@evil/a 1.0.0":     "is not the name of an npm package",
		"node_modules/x 1.0.0":  "is not the name of an npm package",
		"@scope/../evil 1.0.0":  "is not the name of an npm package",
		"lеft-pad 1.0.0":        "is not the name of an npm package", // with a Cyrillic letter
		"x 1.0.0-" + manyDigits: "is not a version",
	} {
		name, version, _ := strings.Cut(pkg, " ")
		err := g.Check(name, version)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pkg, err, want)
		}
	}
}

var manyDigits = strings.Repeat("1", 300)

func TestNPMSettings(t *testing.T) {
	g, err := grantNPM(t, `registry = "https://npm.example/team/"
files = ["CDN.example.com", "other.example:8443"]
excludeNewer = "36h"
maxBytes = "2GB"
maxCount = 10
maxTime = "90s"`)
	if err != nil {
		t.Fatal(err)
	}
	if g.Registry != "https://npm.example/team" || !slices.Equal(g.Files, []string{"cdn.example.com", "other.example:8443"}) || g.ExcludeNewer != 36*time.Hour ||
		g.MaxBytes != 2e9 || g.MaxCount != 10 || g.MaxTime != 90*time.Second || g.Credential != nil {
		t.Errorf("got %+v", g)
	}
	t.Setenv("NPM_CONFIG_REGISTRY", "https://other.example") // is npm's, not the policy's
	g, err = grantNPM(t, "")
	if err != nil || g.Registry != "https://registry.npmjs.org" || g.Files != nil || g.ExcludeNewer != 3*day || g.MaxBytes != 500e6 || g.MaxCount != 1500 || g.MaxTime != 5*time.Minute {
		t.Errorf("by default: %+v, %v", g, err)
	}
	for section, want := range map[string]time.Duration{
		"registry = 'https://registry.npmjs.org/'":                         3 * day,
		"registry = 'http://localhost:4873'":                               0, // it may not say when versions were published
		"registry = 'https://npm.example'\nexcludeNewer = '1 week'":        week,
		"registry = 'https://registry.npmjs.org'\nexcludeNewer = 0":        0,
		"maxCount = 3000\nmaxTime = '2m'\nmaxBytes = 1\nexcludeNewer='3d'": 3 * day,
	} {
		if g, err := grantNPM(t, section); err != nil || g.ExcludeNewer != want {
			t.Errorf("%s: %+v, %v", section, g, err)
		}
	}
}

func TestCredentialOfARegistry(t *testing.T) {
	const section = "registry = 'https://npm.example'\ncredential = { token = 'pre-${env:TEST_NPM_TOKEN}' }"
	_, err := grantNPM(t, section)
	wantErr(t, err, "[packages.npm] credential: the token: the variable TEST_NPM_TOKEN is not set")
	t.Setenv("TEST_NPM_TOKEN", "secret")
	g, err := grantNPM(t, section)
	if err != nil || g.Credential.Authorization != "Bearer pre-secret" || !slices.Equal(g.Credential.Secrets, []string{"pre-secret"}) {
		t.Errorf("got %+v, %v", g, err)
	}
	for _, token := range []string{"Bearer secret", "secret\u00e9", "a\tsecret"} {
		t.Setenv("TEST_NPM_TOKEN", token)
		if _, err := grantNPM(t, section); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestNPMSettingsThatAreWrong(t *testing.T) {
	const own = "registry = 'https://npm.example'; "
	for text, want := range map[string]string{
		`alow = "any"`:                                `2:1: [packages.npm] alow: there is no such key; the keys are allow, deny, registry,`,
		`allow = "some"`:                              `2:1: [packages.npm] allow: it must be "any", "none", or a list of packages`,
		`allow = "left-pad"`:                          `2:1: [packages.npm] allow: it must be "any"`,
		`allow = 3`:                                   `2:1: [packages.npm] allow: it must be "any"`,
		`allow = ["a", "pkg@1.2.3"]`:                  `2:15: [packages.npm] allow: "pkg@1.2.3": versions are not supported here; write the name alone`,
		`allow = ["@a/b@^1"]`:                         `2:10: [packages.npm] allow: "@a/b@^1": versions are not supported`,
		`allow = ["@scope"]`:                          `2:10: [packages.npm] allow: "@scope" is a scope alone; for all its packages write "@scope/*"`,
		`deny = ["user/repo"]`:                        `2:9: [packages.npm] deny: "user/repo" is not the name of an npm package`,
		`deny = ["a", ""]`:                            `2:14: [packages.npm] deny: "" is not the name`,
		`deny = ["[ab]"]`:                             `2:9: [packages.npm] deny: "[ab]" is not the name`,
		`deny = "left pad"`:                           `2:1: [packages.npm] deny: "left pad" is not the name`,
		`deny = 3`:                                    `2:1: [packages.npm] deny: it must be a string or a list of strings`,
		`registry = "registry.npmjs.org"`:             `2:1: [packages.npm] registry: "registry.npmjs.org" is not an address such as https://registry.npmjs.org`,
		`registry = "http://npm.example"`:             `2:1: [packages.npm] registry: the address must begin with https://`,
		`registry = "https://u:secret@npm.example?x"`: `2:1: [packages.npm] registry: a name or password in the address would get into the sandbox that resolves; write them as credential = { token = "${env:NPM_TOKEN}" }`,
		`registry = "https://npm.example?x"`:          `2:1: [packages.npm] registry: "https://npm.example?x" is not an address`,
		`registry = "file:///x"`:                      `2:1: [packages.npm] registry: "file:///x" is not an address`,
		`registry = ["https://npm.example"]`:          `2:1: [packages.npm] registry: it must be a string, not a list`,
		`files = ["a.example", "*.b.example"]`:        `2:23: [packages.npm] files: "*.b.example": a * is not supported here`,
		`files = "https://cdn.example"`:               `2:1: [packages.npm] files: "https://cdn.example": write the host alone`,
		`excludeNewer = "soon"`:                       `2:1: [packages.npm] excludeNewer: "soon" is not a time such as "3 days"`,
		`maxBytes = "lots"`:                           `2:1: [packages.npm] maxBytes: it must be a number of bytes`,
		`maxCount = 0`:                                `2:1: [packages.npm] maxCount: it must be a number of packages from 1 to 3000`,
		`maxCount = 3001`:                             `2:1: [packages.npm] maxCount: it must be a number of packages from 1 to 3000`,
		`maxTime = 0`:                                 `2:1: [packages.npm] maxTime: it must be more than 0`,
		`credential = { token = "t" }`:                `2:1: [packages.npm] credential: it is for a registry of your own, which [packages.npm] registry names`,
		own + `credential = { token = "" }`:           `3:1: [packages.npm] credential: it needs a token, as in { token = "${env:NPM_TOKEN}" }`,
		own + `credential = {}`:                       `3:1: [packages.npm] credential: it needs a token`,
		own + `credential = "secret"`:                 `3:1: [packages.npm] credential: it must be a table, not a string`,
		own + `credential = { user = "u" }`:           `3:16: [packages.npm.credential] user: there is no such key; the keys are token`,
	} {
		r, err := parseRules("[packages.npm]\n"+strings.ReplaceAll(text, "; ", "\n"), "policy.toml")
		wantErr(t, err, "policy policy.toml:"+want)
		if r != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: rules %v, error %v", text, r, err)
		}
	}
}

func TestNPMPackagesAreOpenWithoutAPolicy(t *testing.T) {
	for name, run := range map[string]*Enforcer{
		"none": None().NewEnforcer(), "no section": parsePolicy(t, "[default]\n").NewEnforcer(),
		"of Python alone": parsePolicy(t, "[packages]\nallow = 'none'\ndeny = ['left-pad']").NewEnforcer(),
	} {
		if g, err := run.GrantNPM([]string{"left-pad"}); err != nil || g.Registry != "https://registry.npmjs.org" || g.Check("left-pad", "1.0.0") != nil {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	p := parsePolicy(t, "[packages.npm]\nallow = 'none'")
	_, err := p.NewEnforcer().GrantNPM([]string{"a", "b"})
	wantErr(t, err, "policy "+p.name()+`: the npm package "a" is not allowed: add it to [packages.npm] allow`)
	_, err = Load(writePolicy(t, "[packages.npm]\nallow = 1"), true, nil).NewEnforcer().GrantNPM(nil)
	wantErr(t, err, "policy.toml:2:1: [packages.npm] allow: ", "no packages may be used until this is fixed")
}

// TestZeroValuesGrantNoNPMPackages: rules that were not read, and a grant that they have not made.
func TestZeroValuesGrantNoNPMPackages(t *testing.T) {
	if g, err := new(npmRules).Grant(nil, "policy.toml"); !errors.Is(err, errNoPackages) {
		t.Errorf("no rules grant %+v, %v", g, err)
	}
	for name, g := range map[string]*NPMGrant{"nil": nil, "zero": {}} {
		if err := g.Check("left-pad", "1.0.0"); !errors.Is(err, errNoPackages) {
			t.Errorf("a %s grant has packages: %v", name, err)
		}
	}
}
