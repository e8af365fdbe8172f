package mcpproxy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/discovery"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// site makes a home and a project with these files, all trusted.
func site(t *testing.T, files map[string]string) discovery.Options {
	t.Helper()
	home, dir := mcptest.Site(t, files)
	return discovery.Options{Home: home, Dir: dir, Getenv: mcptest.SiteEnv, Trusted: func(string, string) discovery.TrustState { return discovery.Trusted }}
}

func trusting(t *testing.T, files map[string]string) (discovery.Options, discovery.Trust) {
	t.Helper()
	o := site(t, files)
	trust := discovery.NewTrust(filepath.Join(filepath.Dir(o.Home), "state"))
	o.Trusted = trust.State
	return o, trust
}

func names(c config.Config) string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.Name+"="+s.Command)
	}
	return strings.Join(all, " ")
}
