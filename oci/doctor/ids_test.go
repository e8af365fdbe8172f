package doctor

import (
	"testing"

	"github.com/toolcell/toolcell/oci/host"
)

// TestIDsOfServersAreNamed beside those of code.
func TestIDsOfServersAreNamed(t *testing.T) {
	own, servers := host.IDRange{Start: 100000, Size: 1000}, host.IDRange{Start: 99744, Size: 256}
	for name, tt := range map[string]struct {
		host host.Host
		want string
	}{
		"both":                {host.Host{OwnUIDs: own, ServerUIDs: servers}, "each sandbox has a user ID of its own, from 100000 to 100999; each MCP server in a sandbox has another one, from 99744 to 99999"},
		"too few for servers": {host.Host{OwnUIDs: own}, "each sandbox has a user ID of its own, from 100000 to 100999; MCP servers in sandboxes have this user's own ID"},
		"no /proc":            {host.Host{EUID: 1000, OwnUIDs: own, ServerUIDs: servers, NoProc: true}, "each sandbox has a user ID of its own, from 100000 to 100999; MCP servers in sandboxes have this user's own ID"},
		"one for code":        {host.Host{EUID: 1000, UIDs: host.IDMap{User: 7}}, "code in sandboxes has an id of its own, 7; MCP servers in sandboxes have this user's own ID"},
	} {
		got := idChecks(&hostFacts{host: tt.host})
		if len(got) != 1 || got[0].Status != CheckOK || got[0].Text != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
