package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// sandboxOf returns what a policy says of the sandbox of a server.
func sandboxOf(t *testing.T, text, server string) *Sandbox {
	t.Helper()
	box, err := parsePolicy(t, text).NewEnforcer().Sandbox(Server{Name: server, Alias: strings.ReplaceAll(server, "-", "_")})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestKeysOfASandboxThatAreWrongSayWhere(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	mounts := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{ source = '/a', target = '/a%d' },", i)
		}
		return "[" + b.String() + "]"
	}
	for text, want := range map[string]string{
		"sandbox = 'yes'":                              `2:1: [servers.a] sandbox: "yes" is none of "off", "on"`,
		"sandbox = true":                               `2:1: [servers.a] sandbox: it must be a string, not true`,
		"image = ''":                                   `2:1: [servers.a] image: "" is not the name of an image`,
		"image = 'a b'":                                `2:1: [servers.a] image: "a b" is not the name`,
		"image = '--x'":                                `2:1: [servers.a] image: "--x" is not the name`,
		"image = 1":                                    `2:1: [servers.a] image: it must be a string, not a number`,
		"network = 1":                                  `2:1: [servers.a] network: it must be a list of hosts, or a table with allow, deny, private and via, not a number`,
		"network = ['a.com', 1":                        `2:`,
		"network = ['a.com', 'https:b.com']":           `2:21: [servers.a] network: "https:b.com": the scheme needs ://`,
		"network = ['GET *.a.com/x']":                  `2:1: [servers.a] network: "GET *.a.com/x": a rule with a method or a path needs the name of one host`,
		"network = ['tcp:*.a.com:1']":                  `2:1: [servers.a] network: "tcp:*.a.com:1": tcp:// needs the name of one host`,
		"network = ['10.0.0.1']":                       `2:1: [servers.a] network: "10.0.0.1": an address in place of a host's name has to be listed in private, too`,
		"network = { allow = 'a.com', ask = 'b.com' }": `2:30: [servers.a.network] ask: there is no such key; the keys are allow, deny, private, via`,
		"mounts = '/a'":                                `2:1: [servers.a] mounts: it must be a list of tables`,
		"mounts = [{ source = 'notes' }]":              `2:13: [servers.a.mounts] source: "notes" must be an absolute path, or begin with ~/`,
		"mounts = [{ source = '/a/../b' }]":            `2:13: [servers.a.mounts] source: "/a/../b" has .. in it`,
		"mounts = [{ target = '/b' }]":                 `source: a mount needs a source`,
		"mounts = [{ source = '/' }]":                  `2:13: [servers.a.mounts] source: nothing can be mounted at /`,
		"mounts = [{ source = '/proc/1' }]":            `source: nothing can be mounted at "/proc/1": the sandbox needs /proc unchanged`,
		"mounts = [{ source = '/a', target = '/' }]":   `2:28: [servers.a.mounts] target: nothing can be mounted at /`,
		"mounts = [{ source = '/a', target = '/home/server/.config/a' }]":   `target: nothing can be mounted at "/home/server/.config/a": /home/server is the server's HOME`,
		"mounts = [{ source = '/a', target = '/home' }]":                    `target: nothing can be mounted at "/home": /home/server is the server's HOME`,
		"mounts = [{ source = '/a', target = '/b/c' }, { source = '/b' }]":  `the target "/b/c" is inside of the target "/b"`,
		"mounts = [{ source = '/a', target = '/run' }]":                     `target: nothing can be mounted at "/run": the sandbox needs /run/toolcell unchanged`,
		"mounts = [{ source = '/a', target = '/run/toolcell/x' }]":          `target: nothing can be mounted at`,
		"mounts = [{ source = '/a', target = '/sys' }]":                     `target: nothing can be mounted at`,
		"mounts = [{ source = '/a', target = '/dev/x' }]":                   `target: nothing can be mounted at`,
		"mounts = [{ source = '/a', target = 'b' }]":                        `target: "b" must be an absolute path`,
		"mounts = [{ source = '/a', target = '/b/' }]":                      `target: "/b/" must be an absolute path without . or .. and without a / at its end`,
		"mounts = [{ source = '/a', target = '/b/../proc' }]":               `target: "/b/../proc" must be`,
		"mounts = [{ source = '/a', target = \"/b\\u0001\" }]":              `is no path`,
		"mounts = [{ source = '/a', write = 'yes' }]":                       `2:28: [servers.a.mounts] write: it must be true or false, not a string`,
		"mounts = [{ source = '/a', mode = 'rw' }]":                         `2:28: [servers.a.mounts] mode: there is no such key; the keys are source, target, write`,
		"mounts = [{ source = '/a' }, { source = '/b', target = '/a' }]":    `2:1: [servers.a] mounts: two mounts have the target "/a"`,
		"mounts = " + mounts(21):                                            `2:1: [servers.a] mounts: it lists 21 mounts; the most is 20`,
		"memory = '1 pound'":                                                `2:1: [servers.a] memory: "1 pound": not a size`,
		"memory = 1000":                                                     `2:1: [servers.a] memory: "1000": too small: a server needs at least 16 MiB`,
		"memory = true":                                                     `2:1: [servers.a] memory: it must be a size such as "1GiB", not true`,
		"cpus = 0":                                                          `2:1: [servers.a] cpus: it must be a number of processors`,
		"cpus = '1'":                                                        `2:1: [servers.a] cpus: it must be a number such as 1.5, not a string`,
		"cpus = nan":                                                        `2:1: [servers.a] cpus: it must be a number such as 1.5`,
		"pids = 0":                                                          `2:1: [servers.a] pids: it must be a number of processes`,
		"pids = 1.5":                                                        `2:1: [servers.a] pids: it must be a whole number`,
		"secrets = 'A'":                                                     `2:1: [servers.a] secrets: it must be a list`,
		"secrets = ['A-B']":                                                 `2:12: [servers.a] secrets: "A-B" is not a name for a variable`,
		"secrets = [1]":                                                     `2:12: [servers.a] secrets: it must be the name of a variable, or a table`,
		"secrets = ['A', 'A']":                                              `2:1: [servers.a] secrets: A is there twice`,
		"secrets = [{ env = 'A' }]":                                         `a secret for a host needs env and host`,
		"secrets = [{ env = 'A', host = 'a.com' }]":                         `2:1: [servers.a] secrets: A is for the host "a.com", which network does not allow`,
		"network = 'b.com'\nsecrets = [{ env = 'A', host = 'a.com' }]":      `3:1: [servers.a] secrets: A is for the host "a.com", which network does not allow`,
		"secrets = [{ env = 'A', host = '*.a.com' }]":                       `2:25: [servers.a.secrets] host: "*.a.com": it must be one host, without *`,
		"secrets = [{ env = 'A', host = 'a.com', header = 'Host' }]":        `header: "Host" is not a header that may have a credential`,
		"secrets = [{ env = 'A', host = 'a.com', format = 'x' }]":           `2:41: [servers.a.secrets] format: there is no such key; the keys are host, header, value, env`,
		"network = 'a.com'\nsecrets = ['A', { env = 'A', host = 'a.com' }]": `the server would get both the value of A and a placeholder for it`,
		"secrets = [" + strings.Repeat("'A',", 51) + "]":                    `it lists 51 secrets; the most is 50`,
		"install = [7]":                                                     `2:12: [servers.a] install: it must be a string, not a number`,
		"allowScripts = true":                                               `2:1: [servers.a] allowScripts: there is no such key`,
		"install = ['a.com/x y']":                                           `[servers.a] install: `,
		"[servers.'*']\nimage = 'x'":                                        `3:1: [servers."*"] image: it gives a server something, so it must be in the section of one server`,
		"[servers.'git*']\nsandbox = 'on'\nreadOnly = true\nmounts = []":    `5:1: [servers."git*"] mounts: it gives a server something`,
		"[servers.b]\nimage='x'\n[servers.'b?']\npids = 1":                  `5:1: [servers."b?"] pids: it gives a server something`,
		"[default]\nnetwork = 'a.com'":                                      `3:1: [default] network: it gives a server something`,
		"[default]\nmemory = '1g'":                                          `3:1: [default] memory: it gives a server something`,
		"[default]\ncpus = 1":                                               `3:1: [default] cpus: it gives a server something`,
		"[default]\nsecrets = ['A']":                                        `3:1: [default] secrets: it gives a server something`,
		"[default]\ninstall = 'a.com'":                                      `3:1: [default] install: it gives a server something`,
		"[servers.a.tools.b]\nsandbox = 'on'":                               `3:1: [servers.a.tools.b] sandbox: there is no such key`,
		"network = [" + strings.Repeat("'a.com',", 101) + "]":               `2:1: [servers.a] network: it lists 101 hosts; the most is 100`,
		"mounts = [{ source = '/" + strings.Repeat("a", 2000) + "', target = '/notes' }]": `2:13: [servers.a.mounts] source: `,
	} {
		_, err := parseRules("[servers.a]\n"+text, "policy.toml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "policy policy.toml:") {
			t.Errorf("%.80s\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestSandboxIsWhatTheSectionSays(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	box := sandboxOf(t, `
[default]
sandbox = "off"
[servers."git*"]
sandbox = "on"
[servers.github]
image = "node:24-slim"
network = ["api.github.com", "*.githubusercontent.com", "tcp:db.internal:5432"]
mounts = [{ source = "~/notes/", target = "/notes" }, { source = "/srv/out", write = true }]
memory = "2 GiB"
cpus = 1.5
pids = 512
secrets = ["TEAM", { env = "GITHUB_TOKEN", host = "api.github.com" }]
install = ["github.com"]
`, "github")
	if box.Mode != SandboxOn || !strings.HasSuffix(box.Rule, `[servers."git*"] sandbox = "on"`) || box.Section != "[servers.github]" || box.Image != "node:24-slim" ||
		box.Memory != 2<<30 || box.CPUs != 1.5 || box.PIDs != 512 || !slices.Equal(box.Mounts, []Mount{{"/home/me/notes", "/notes", false}, {"/srv/out", "/srv/out", true}}) {
		t.Errorf("%+v", box)
	}
	want := `image: node:24-slim
network: api.github.com
network: *.githubusercontent.com
network: tcp:db.internal:5432
mount: /home/me/notes at /notes, read-only
mount: /srv/out at /srv/out, which it may write to
memory: 2 GiB
processes: 512
secret: TEAM, its value
secret: GITHUB_TOKEN, a placeholder; api.github.com gets the value as Authorization
install scripts: github.com`
	if got := strings.Join(box.Rights(), "\n"); got != want {
		t.Errorf("rights:\n%s\nwant:\n%s", got, want)
	}
	g, err := box.Install()
	if err != nil || len(g.Targets) != 1 || g.Targets[0].Host != "github.com" || len(g.Credentials) != 0 {
		t.Errorf("install scripts: %+v, %v", g, err)
	}
}

// TestInstallScriptsWithoutANetwork: a list of no hosts lets them run, no list does not.
func TestInstallScriptsWithoutANetwork(t *testing.T) {
	box := sandboxOf(t, "[servers.a]\ninstall = []", "a")
	g, err := box.Install()
	if g == nil || err != nil || len(g.Targets) > 0 || box.InstallRules() != "[]" || !slices.Equal(box.Rights(), []string{"install scripts: without a network"}) {
		t.Errorf("%+v, %v, %q, %q", g, err, box.InstallRules(), box.Rights())
	}
	if none := sandboxOf(t, "[servers.a]\nnetwork = []", "a"); none.InstallRules() != "" {
		t.Errorf("without install: %q", none.InstallRules())
	}
}

func TestSandboxWithoutASection(t *testing.T) {
	for name, text := range map[string]string{"none": "", "another": "[servers.b]\nimage = 'x'", "plain": "[servers.a]\ndeny = 'x'"} {
		box := sandboxOf(t, text, "a")
		if box.Mode != "" || box.On(false) || !box.On(true) || box.Memory != 1<<30 || box.PIDs != 256 || box.CPUs != 0 || box.Section != "" || box.Rights() != nil {
			t.Errorf("%s: %+v", name, box)
		}
		g, env, err := box.Network(map[string]string{"A": "1"})
		install, errInstall := box.Install()
		if g != nil || install != nil || err != nil || errInstall != nil || !maps.Equal(env, map[string]string{"A": "1"}) {
			t.Errorf("%s: %v, %v, %v, %v", name, g, install, env, err)
		}
	}
	box := sandboxOf(t, "[servers.a]\nmemory = '512m'\npids = 8\ncpus = 1", "a")
	if box.Rights() != nil || box.Memory != 512<<20 || box.PIDs != 8 {
		t.Errorf("less than the default is a right: %q", box.Rights())
	}
}

// TestSecretsComeFromTheEntryFirst, and a server never starts without one.
func TestSecretsComeFromTheEntryFirst(t *testing.T) {
	const text = `
[servers.a]
network = ["api.example.com", "b.example.com"]
secrets = ["PLAIN", { env = "TOKEN", host = "api.example.com" }, { env = "TOKEN", host = "b.example.com", header = "X-Key", value = "key ${env:TOKEN}" }]
`
	t.Setenv("PLAIN", "of-the-process")
	t.Setenv("TOKEN", "")
	box := sandboxOf(t, text, "a")
	g, env, err := box.Network(map[string]string{"TOKEN": "of-the-entry", "OTHER": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(env, map[string]string{"PLAIN": "of-the-process", "OTHER": "1"}) {
		t.Errorf("inside are %v", env)
	}
	if len(g.Credentials) != 2 || g.Credentials[0].Value != "Bearer of-the-entry" || g.Credentials[1].Value != "key of-the-entry" ||
		g.Credentials[1].Header != "X-Key" || g.Credentials[0].Env != "TOKEN" || !slices.Equal(g.Credentials[0].Secrets, []string{"of-the-entry"}) {
		t.Errorf("credentials %+v", g.Credentials)
	}
	_, env, err = box.Network(map[string]string{"PLAIN": "x"})
	missing, ok := errors.AsType[*MissingSecretError](err)
	if !ok || missing.Variable != "TOKEN" || env != nil {
		t.Errorf("without a value: %v, %v", env, err)
	}
	wantErr(t, err, `[servers.a] secrets: server "a" needs a value for TOKEN: set it in env of the server's entry, or in the environment of toolcell`)
	if !slices.Equal(box.SecretVariables(), []string{"PLAIN", "TOKEN", "TOKEN"}) {
		t.Error(box.SecretVariables())
	}
}

// TestRightsAreOfTheExactName: an alias or a name in another case may be another server's.
func TestRightsAreOfTheExactName(t *testing.T) {
	for text, want := range map[string]string{
		"[servers.my_server]\nimage = 'x'":                                              `[servers.my_server]: its image may be for another server: a section that gives something needs the server's exact name, "my-server"`,
		"[servers.MY-SERVER]\nsecrets = ['A']":                                          `[servers.MY-SERVER]: its secrets may be for another server`,
		"[servers.MY-SERVER]\nsecrets = ['A']\n[servers.my-server]\nreadOnly = true":    "",
		"[servers.my_server]\nreadOnly = true":                                          "",
		"[servers.my_server]\nsandbox = 'on'\n[servers.my-server]\nnetwork = ['a.com']": "",
	} {
		box, err := parsePolicy(t, text).NewEnforcer().Sandbox(Server{Name: "my-server", Alias: "my_server"})
		if want == "" {
			if err != nil || slices.ContainsFunc(box.Rights(), func(line string) bool { return strings.HasPrefix(line, "secret") }) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		wantErr(t, err, want)
	}
}

// TestSandboxIsUnknownWithoutAPolicyThatIsUnderstood.
func TestSandboxIsUnknownWithoutAPolicyThatIsUnderstood(t *testing.T) {
	var faulty *Enforcer
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "reading the policy" })
		faulty = Load(writePolicy(t, ""), false, nil).NewEnforcer()
	})
	var none *Enforcer
	for name, r := range map[string]*Enforcer{"nil": none, "zero": {}, "wrong": Load(writePolicy(t, "x = 1"), true, nil).NewEnforcer(), "faulty": faulty} {
		if box, err := r.Sandbox(Server{Name: "a"}); err == nil || box != nil || !strings.Contains(err.Error(), "no server may start until this is fixed") {
			t.Errorf("%s: %+v, %v", name, box, err)
		}
	}
	if box, err := None().NewEnforcer().Sandbox(Server{Name: "a"}); err != nil || box.Mode != "" {
		t.Errorf("without a policy: %+v, %v", box, err)
	}
}

func TestKeysOfASandboxAreExplained(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	p := Parse([]byte(`
[servers.a]
sandbox = "on"
image = "x"
network = { allow = ["a.com"], private = ["a.com"] }
mounts = [{ source = "~/n", target = "/n" }, { source = "/w", write = true }]
memory = "1.5g"
cpus = 2
pids = 3
secrets = ["B", { env = "A", host = "a.com" }]
install = "b.com"
`), "/etc/policy.toml")
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	want := []string{
		`sandbox = "on"`, `image = "x"`, `network = { allow = ["a.com"], private = ["a.com"] }`, `mounts = [{ source = "~/n", target = "/n", write = false }]`,
		`mounts = [{ source = "/w", target = "/w", write = true }]`, "memory = 1610612736", "cpus = 2", "pids = 3", `secrets = ["B"]`,
		`secrets = [{ env = "A", host = "a.com", header = "Authorization" }]`, `install = ["b.com"]`,
	}
	for i, r := range p.Sections()[0].Rules {
		if i >= len(want) || r.Text != want[i] || r.Says == "" {
			t.Errorf("%+v", r)
			continue
		}
		again := "[servers.a]\nnetwork = 'a.com'\n" + r.Text
		if strings.HasPrefix(r.Text, "network") {
			again = "[servers.a]\n" + r.Text
		}
		if _, err := parseRules(again, "policy.toml"); err != nil {
			t.Errorf("%s cannot be read again: %v", r.Text, err)
		}
	}
}

// TestWrittenMounts are those of all servers: what one of them leaves there, others may come upon.
func TestWrittenMounts(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	p := Parse([]byte(`
[servers.a]
mounts = [{ source = "~/notes", write = true }, { source = "/srv/in" }]
[servers.b]
mounts = [{ source = "/srv/out/", write = true }]`), "policy.toml")
	if got := slices.Sorted(slices.Values(p.NewEnforcer().WrittenMounts())); !slices.Equal(got, []string{"/home/me/notes", "/srv/out"}) {
		t.Errorf("got %q", got)
	}
}
