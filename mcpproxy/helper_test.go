package mcpproxy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// unlimited is a run that no policy limits.
var unlimited = policy.None().NewRun()

func trusting(t *testing.T, files map[string]string) (clientconfig.Options, clientconfig.Trust) {
	t.Helper()
	o := mcptest.Site(t, files)
	trust := clientconfig.NewTrust(filepath.Join(filepath.Dir(o.Home), "state"))
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
