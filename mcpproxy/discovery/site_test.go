package discovery

import (
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// site makes a home and a project with these files, all trusted.
func site(t *testing.T, files map[string]string) Options {
	t.Helper()
	home, dir := mcptest.Site(t, files)
	return Options{Home: home, Dir: dir, Getenv: mcptest.SiteEnv, Trusted: func(string, string) TrustState { return Trusted }}
}

// siteOf makes a home and a project of the files below root, all trusted.
func siteOf(t *testing.T, root string) Options {
	t.Helper()
	home, dir := mcptest.SiteOf(t, root)
	return Options{
		Home: home, Dir: dir, Getenv: mcptest.SamplesEnv, Values: mcptest.SamplesValues,
		Trusted: func(string, string) TrustState { return Trusted },
	}
}
