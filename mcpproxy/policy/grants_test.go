package policy

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/requirement"
)

func TestNetworkIsClosedWithoutAPolicy(t *testing.T) {
	none := None()
	for name, run := range map[string]*Enforcer{"none": none.NewEnforcer(), "no section": parsePolicy(t, "[default]\n").NewEnforcer()} {
		if _, err := run.GrantNetwork([]string{"https://example.com"}); err == nil || !strings.Contains(err.Error(), `add "example.com" to [network] allow`) {
			t.Errorf("%s: error %v", name, err)
		}
		if g, err := run.GrantNetwork(nil); g != nil || err != nil {
			t.Errorf("%s: a call that asks for nothing got %v, %v", name, g, err)
		}
	}
	broken := Load(writePolicy(t, "[network]\nallow = 1"), true, nil).NewEnforcer()
	_, err := broken.GrantNetwork([]string{"https://example.com"})
	wantErr(t, err, "policy.toml:2:1: [network] allow: ", "nothing may be reached until this is fixed")
}

func TestPackagesAreOpenWithoutAPolicy(t *testing.T) {
	wanted := []requirement.Requirement{{Name: "pandas"}}
	none := None()
	for name, run := range map[string]*Enforcer{"none": none.NewEnforcer(), "no section": parsePolicy(t, "[default]\n").NewEnforcer()} {
		if g, err := run.GrantPackages(wanted); err != nil || g.MaxCount == 0 {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	_, err := Load(writePolicy(t, "[packages"), true, nil).NewEnforcer().GrantPackages(wanted)
	wantErr(t, err, "policy.toml:1:", "no packages may be used until this is fixed")
}

// TestGrantsNameTheFile that asks or denies.
func TestGrantsNameTheFile(t *testing.T) {
	p := parsePolicy(t, "[network]\nask = 'ask.test'\n[packages]\nask = ['numpy']\nallow = 'none'")
	n, err := p.NewEnforcer().GrantNetwork([]string{"https://ask.test"})
	if want := "policy " + p.name() + `, [network] ask = "ask.test": the code wants to reach ask.test`; err != nil || len(n.Ask) != 1 || n.Ask[0] != want {
		t.Errorf("%+v, %v; want %s", n, err, want)
	}
	g, err := p.NewEnforcer().GrantPackages([]requirement.Requirement{{Name: "numpy"}})
	if want := "policy " + p.name() + `, [packages] ask = "numpy": the code wants the package "numpy"`; err != nil || len(g.Ask) != 1 || g.Ask[0] != want {
		t.Errorf("%+v, %v; want %s", g, err, want)
	}
	_, err = p.NewEnforcer().GrantPackages([]requirement.Requirement{{Name: "pandas"}})
	wantErr(t, err, "policy "+p.name()+`: the package "pandas" is not allowed: add it to [packages] allow`)
	_, err = None().NewEnforcer().GrantNetwork([]string{"https://ask.test"})
	wantErr(t, err, `policy the policy file: "https://ask.test" is not allowed`)
}

func TestFilesAreNamedAsPeopleWriteThem(t *testing.T) {
	for _, tt := range []struct{ home, file, want string }{
		{"/home/me", "/home/me/x/policy.toml", "~/x/policy.toml"},
		{"/home/me", "/home/meow/policy.toml", "/home/meow/policy.toml"},
		{"/", "/x/policy.toml", "/x/policy.toml"},
		{"", "/x/policy.toml", "/x/policy.toml"},
		{"/home/me", "", "the policy file"},
	} {
		t.Setenv("HOME", tt.home)
		if got := (&Policy{file: tt.file}).name(); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	if got := (*Policy)(nil).name(); got != "the policy file" {
		t.Errorf("without a policy: %s", got)
	}
}
