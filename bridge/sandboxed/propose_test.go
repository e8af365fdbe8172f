package sandboxed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestProposalsComeFromTheEntry, and from what its sandbox refused.
func TestProposalsComeFromTheEntry(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{"notes", `odd "name"`, "work"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(home, name) }
	for name, tt := range map[string]struct {
		server  config.Server
		refused []string
		want    string
	}{
		"folders in arguments": {
			config.Server{Args: []string{"-y", "@modelcontextprotocol/server-filesystem", at("notes"), "--also=" + at(`odd "name"`), "/no/such/place", "~/work"}},
			nil,
			`mounts = [{ source = "` + at("notes") + `" }, { source = "` + home + `/odd \"name\"" }, { source = "` + at("work") + `" }]` + "\n",
		},
		"a token for the one host": {
			config.Server{Env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_x"}},
			[]string{"api.github.com:443"},
			"network = [\"api.github.com\"]\nsecrets = [{ env = \"GITHUB_PERSONAL_ACCESS_TOKEN\", host = \"api.github.com\" }]\n",
		},
		"a token, and no host": {
			config.Server{Env: map[string]string{"NOTION_TOKEN": "x", "LOG_LEVEL": "debug", "MONKEY": "x"}}, nil, "secrets = [\"NOTION_TOKEN\"]\n",
		},
		"addresses": {
			config.Server{Args: []string{"postgresql+asyncpg://me:pw@db.internal/x"}, Env: map[string]string{"GITLAB_API_URL": "https://git.example.com:8443/api/v4", "REDIS_URL": "redis://cache:6380"}},
			[]string{"example.org:80", "mail.example.org:993"},
			"network = [\"tcp:db.internal:5432\", \"git.example.com:8443\", \"tcp:cache:6380\", \"example.org\", \"mail.example.org:993\"]\n",
		},
		"a database's URL is a secret too": {
			config.Server{Env: map[string]string{"SENTRY_DSN": "https://key@o1.ingest.sentry.io/2"}},
			nil,
			"network = [\"o1.ingest.sentry.io\"]\nsecrets = [{ env = \"SENTRY_DSN\", host = \"o1.ingest.sentry.io\" }]\n",
		},
		"where it starts": {config.Server{Dir: at("work")}, nil, `mounts = [{ source = "` + at("work") + `" }]` + "\n"},
		"nothing":         {config.Server{Args: []string{"-y", "some-server"}}, nil, ""},
	} {
		tt.server.Name = "a b"
		if got, want := Propose(tt.server, tt.refused).Section(), "[servers.\"a b\"]\nsandbox = \"on\"\n"+tt.want; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestProposalsShowNoMoreThanIsNeeded: what would be too much is said, and not proposed.
func TestProposalsShowNoMoreThanIsNeeded(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for word, want := range map[string]string{
		"/":                              "too much to show",
		home:                             "too much to show",
		home + "/.":                      "too much to show",
		"/var/run/docker.sock":           "on the host alone",
		"unix:///run/docker.sock":        "",
		"/dev/null":                      "on the host alone",
		"http://localhost:8080":          "private",
		"postgres://127.0.0.1:5432/mine": "private",
	} {
		p := Propose(config.Server{Name: "x", Args: []string{word}}, nil)
		if len(p.Mounts) > 0 || want != "" && !strings.Contains(strings.Join(p.Notes, "\n"), want) || !strings.HasSuffix(p.Section(), "\n") {
			t.Errorf("%s: %+v", word, p)
		}
	}
}
