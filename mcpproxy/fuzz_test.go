package mcpproxy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var aliasForm = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// FuzzDiscover reads whatever bytes stand in a config file. It must not panic,
// and every server it finds has what the rest of the program relies on.
func FuzzDiscover(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"K":"v"}}}}`,
		`{"servers":{"a b":{"command":"${HOME}/x"},"class":{"command":"x"},"2":{"command":"x"}}}`,
		`{"mcpServers":{"a":{"command":5},"":{"command":"x"},"A":{"command":"x"},"a":{"url":"http://x"}}}`,
		`{"command":"x"}`, `[]`, `null`, `{`, "\xff", `{"projects":{"/":{"mcpServers":{"p":{"command":"x"}}}}}`,
		`{"mcpServers":{"a":{"command":"${X:-${Y}}"},"b":{"command":"$X"},"c":{"command":"${"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		home := t.TempDir()
		for _, name := range []string{".claude.json", "extra.json"} {
			if err := os.WriteFile(filepath.Join(home, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found := Discover(DiscoverOptions{Home: home, Dir: "/", Extra: filepath.Join(home, "extra.json")})
		names, aliases := map[string]bool{}, map[string]bool{}
		for _, s := range found.Servers {
			if s.Name == "" || s.Command == "" && s.URL == "" || names[s.Name] || aliases[s.Alias] || !aliasForm.MatchString(s.Alias) {
				t.Errorf("server %+v", s)
			}
			names[s.Name], aliases[s.Alias] = true, true
		}
		for _, p := range found.Problems {
			if p.Reason == "" {
				t.Errorf("problem without a reason: %+v", p)
			}
		}
	})
}
