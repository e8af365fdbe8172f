package sandboxed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
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
	if err := os.WriteFile(filepath.Join(home, "server"), nil, 0o755); err != nil {
		t.Fatal(err)
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
		"a program of the host":  {config.Server{Command: at("server")}, nil, `mounts = [{ source = "` + at("server") + `" }]` + "\n"},
		"a program of the image": {config.Server{Command: "/usr/bin/env"}, nil, ""},
		"where it starts":        {config.Server{Dir: at("work")}, nil, `mounts = [{ source = "` + at("work") + `" }]` + "\n"},
		"nothing":                {config.Server{Args: []string{"-y", "some-server"}}, nil, ""},
	} {
		tt.server.Name = "a b"
		if got, want := Propose(tt.server, tt.refused).Section(sectionOf(t, "")), "[servers.\"a b\"]\nsandbox = \"on\"\n"+tt.want; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// sectionOf is what a policy says of the server "a b", which may have a section.
func sectionOf(t *testing.T, written string) *policy.Sandbox {
	t.Helper()
	box, err := policy.Parse([]byte(written), "policy.toml").NewEnforcer().Sandbox(policy.Server{Name: "a b", Alias: "a_b"})
	if err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	return box
}

// TestProposalsKeepWhatTheSectionHas, and are sections that the policy takes.
func TestProposalsKeepWhatTheSectionHas(t *testing.T) {
	server := config.Server{Name: "a b", Args: []string{"https://api.example.com/v1"}, Env: map[string]string{"MINE_TOKEN": "x", "OTHER_TOKEN": "y"}}
	refused := []string{"new.example.com:443", "db.internal", "10.0.0.8:5432", "bad name:443", "www.example.org:443"}
	const has = `[servers."a b"]
image = "node:24-slim"
mounts = [{ source = "/srv/notes", target = "/notes", write = true }]
network = { allow = ["GET https://api.example.com/v1/*", "https://api.example.com", "*.example.org"], deny = ["evil.example.com"], private = ["10.1.0.0/16"], via = "env" }
secrets = ["PLAIN", { env = "MINE_TOKEN", host = "api.example.com", header = "X-Key", value = "key ${env:MINE_TOKEN}" }]
memory = "2GiB"
cpus = 1.5
pids = 64
install = ["github.com"]
`
	got := Propose(server, refused).Section(sectionOf(t, has))
	for _, want := range []string{
		"\nimage = \"node:24-slim\"\n", "\nmounts = [{ source = \"/srv/notes\", target = \"/notes\", write = true }]\n",
		`network = { allow = ["GET https://api.example.com/v1/*", "https://api.example.com", "*.example.org", "new.example.com", "db.internal"], deny = ["evil.example.com"], private = ["10.1.0.0/16"], via = "env" }`,
		`secrets = ["PLAIN", { env = "MINE_TOKEN", host = "api.example.com", header = "X-Key", value = "key ${env:MINE_TOKEN}" }, "OTHER_TOKEN"]`,
		"\nmemory = 2147483648\ncpus = 1.5\npids = 64\ninstall = [\"github.com\"]\n", "# left out: \"10.0.0.8:5432\": an address", "# left out: \"bad name",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if again := Propose(server, nil).Section(sectionOf(t, got)); !strings.HasSuffix(got, again) || t.Failed() {
		t.Errorf("%s\nand with that in the policy\n%s", got, again)
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
		"/dev/null":                      "",
		"http://localhost:8080":          "private",
		"postgres://127.0.0.1:5432/mine": "private",
	} {
		p := Propose(config.Server{Name: "a b", Args: []string{word}}, nil)
		if len(p.Mounts) > 0 || want != "" && !strings.Contains(strings.Join(p.Notes, "\n"), want) || !strings.HasSuffix(p.Section(sectionOf(t, "")), "\n") {
			t.Errorf("%s: %+v", word, p)
		}
	}
}

// TestServersThatNeedTheHostAreNotProposedForASandbox, with the reason, in a section that says so.
func TestServersThatNeedTheHostAreNotProposedForASandbox(t *testing.T) {
	for name, tt := range map[string]struct {
		server config.Server
		why    string
	}{
		"docker":                 {config.Server{Command: "docker", Args: []string{"run", "-i", "x"}, Env: map[string]string{"A_TOKEN": "x"}}, "docker starts a container on the host"},
		"docker.sock":            {config.Server{Command: "x", Args: []string{"/var/run/docker.sock"}}, "it names /var/run/docker.sock: what can use the socket"},
		"a variable":             {config.Server{Command: "x", Env: map[string]string{"DOCKER_HOST": "unix:///run/podman/podman.sock"}}, "podman.sock: what can use the socket"},
		"the value of an option": {config.Server{Command: "x", Args: []string{"--device=/dev/ttyUSB0"}}, "it names /dev/ttyUSB0: it is a device"},
		"D-Bus":                  {config.Server{Command: "x", Env: map[string]string{"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus"}}, "it is D-Bus"},
		"a keychain":             {config.Server{Command: "x", Args: []string{"/home/me/.local/share/keyrings"}}, "it is a keychain"},
		"a line of a shell":      {config.Server{Command: "bash", Args: []string{"-c", "exec x --socket '/run/docker.sock'"}}, "it names /run/docker.sock"},
	} {
		got := Propose(tt.server, nil).Section(sectionOf(t, "[servers.'a b']\nnetwork = ['example.com']\n"))
		if !strings.HasPrefix(got, "# ") || !strings.Contains(got, tt.why) || !strings.HasSuffix(got, "\n[servers.\"a b\"]\nsandbox = \"off\"\n") || strings.Count(got, "\n") != 3 {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestCommandsThatNoSandboxRunsHaveNoSection: they have to be changed first.
func TestCommandsThatNoSandboxRunsHaveNoSection(t *testing.T) {
	for _, s := range []config.Server{
		{Name: "a b", Command: "npx", Args: []string{"-y", "github:user/repo"}},
		{Name: "a b", Command: "uvx", Args: []string{"--from", "git+https://example.com/r", "x"}},
	} {
		if p := Propose(s, nil); p.Unread == nil || p.OnHost != "" || p.Section(sectionOf(t, "")) != "" {
			t.Errorf("%v: %+v", s.Args, p)
		}
	}
}

// TestLinesOfAShellAreRead word by word, and what fetches packages in them is said.
func TestLinesOfAShellAreRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	plain := t.TempDir()
	got := Propose(config.Server{Command: "bash", Args: []string{"-c", "cd '" + plain + "' && npx -y x"}}, nil)
	if len(got.Mounts) != 1 || got.Mounts[0] != plain || !strings.Contains(strings.Join(got.Notes, "\n"), "write npx as the command itself") {
		t.Errorf("%+v", got)
	}
	if got := Propose(config.Server{Command: "x", Args: []string{work}}, nil); len(got.Mounts) != 1 || got.Mounts[0] != work {
		t.Errorf("a folder with a space in its name: %+v", got)
	}
}

// TestMissingProgramsAreSaid unless the proposal shows them.
func TestMissingProgramsAreSaid(t *testing.T) {
	p := Propose(config.Server{Command: "deno"}, nil)
	if p.NoteMissing("deno"); !strings.Contains(p.Section(sectionOf(t, "")), "# its sandbox has no program deno: name an image that has it") {
		t.Errorf("%+v", p)
	}
	shown := Proposal{Mounts: []string{"/opt/server"}}
	if shown.NoteMissing("/opt/server"); len(shown.Notes) > 0 {
		t.Errorf("%+v", shown)
	}
}
