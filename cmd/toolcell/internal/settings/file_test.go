package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/ostest"
)

// inHome gives the test a home of its own, and no variables of settings.
func inHome(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, k := range All {
		t.Setenv(k.Variable(), "")
		t.Setenv(k.OldVariable(), "")
	}
	return home
}

// writeUserFile writes the user's file.
func writeUserFile(t *testing.T, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(ConfigDir(), 0o700), os.WriteFile(UserFile(), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func userText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(UserFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readFlags reads the settings of a command that has all of them.
func readFlags(args ...string) (s Settings, err error) {
	app := &cli.App{Flags: Flags(), Action: func(c *cli.Context) (err error) { s, err = Read(c); return err }}
	err = app.Run(append([]string{"toolcell"}, args...))
	return s, err
}

// TestPrecedence: flag, variable, old variable, file, default.
func TestPrecedence(t *testing.T) {
	inHome(t)
	check := func(want Value, args ...string) {
		t.Helper()
		s, err := readFlags(args...)
		got := s.Value("timeout")
		got.origin = 0
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	check(Value{Text: "30s"})
	writeUserFile(t, "# mine\ntimeout = 90\n")
	check(Value{Text: "90", From: "~/.config/toolcell/config.toml:2"})
	t.Setenv("MCP_BRIDGE_TIMEOUT", "8s")
	check(Value{Text: "8s", From: "MCP_BRIDGE_TIMEOUT"})
	t.Setenv("TOOLCELL_TIMEOUT", ` "8s" `)
	check(Value{Text: "8s", From: "TOOLCELL_TIMEOUT"}) // both agree
	t.Setenv("TOOLCELL_TIMEOUT", "9s")
	check(Value{Text: "7s", From: "--timeout"}, "--timeout", "7s")
	var exit *console.ExitError
	_, err := readFlags()
	want := `TOOLCELL_TIMEOUT is "9s" and MCP_BRIDGE_TIMEOUT, its old name, is "8s": unset one of them`
	if !errors.As(err, &exit) || exit.Code != console.ExitUsage || err.Error() != want {
		t.Errorf("both variables: %v", err)
	}
	t.Setenv("MCP_BRIDGE_TIMEOUT", "")
	check(Value{Text: "9s", From: "TOOLCELL_TIMEOUT"})
	check(Value{Text: "9s", From: "TOOLCELL_TIMEOUT"}, "--timeout", "")
}

// TestVariablesFollowFromNames, and the old ones count.
func TestVariablesFollowFromNames(t *testing.T) {
	for name, want := range map[string][2]string{
		"max-timeout":    {"TOOLCELL_MAX_TIMEOUT", "MCP_BRIDGE_MAX_TIMEOUT"},
		"output":         {"TOOLCELL_OUTPUT", "MCP_BRIDGE_OUTPUT_MODE"},
		"idle-timeout":   {"TOOLCELL_IDLE_TIMEOUT", "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT"},
		"servers-config": {"TOOLCELL_SERVERS_CONFIG", "MCP_SERVERS_CONFIG"},
	} {
		k := Find(name)
		if got := [2]string{k.Variable(), k.OldVariable()}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	inHome(t)
	for _, k := range All {
		if !strings.Contains("output idle-timeout servers-config timeout", k.Name) {
			continue
		}
		value := map[string]string{"output": "toon", "servers-config": "/x"}[k.Name]
		if value == "" {
			value = "77s"
		}
		t.Setenv(k.OldVariable(), value)
		if s, err := readFlags(); err != nil || s.Value(k.Name).Text != value {
			t.Errorf("%s: %v, %v", k.OldVariable(), s.Value(k.Name), err)
		}
	}
}

// TestFileHasValuesOfTheirKinds, and paths below ~.
func TestFileHasValuesOfTheirKinds(t *testing.T) {
	home := inHome(t)
	if err := os.MkdirAll(filepath.Join(home, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeUserFile(t, "\ufeff"+strings.ReplaceAll(`timeout = 1.5
cpus = 2.0
pids = 64
memory = 1_073_741_824
allow-self-server = true
mounts = [
  "~/data:/data", # mine
]
preload = ["numpy", "pandas"]
registry-mirrors = ["docker.io=m.example,n.example", "ghcr.io=o.example"]
insecure-registries = "a:1,b:2"
image = "oci:~/image:tag"
policy = "~/p.toml"
output = "TOON"
uv = ""
`, "\n", "\r\n"))
	s, err := readFlags()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Runs.Timeout, s.Runs.Limits.CPUs, s.Runs.Limits.PIDs, s.Runs.Limits.Memory, s.AllowSelf, s.Mounts[0].Source, s.Runs.Preload,
		len(s.Puller.Mirrors), s.Puller.PlainHTTP, s.Image, s.Policy, s.Bridge.Output, s.UV)
	want := fmt.Sprint(1500*time.Millisecond, 2, 64, 1<<30, true, home+"/data", []string{"numpy", "pandas"}, 2, []string{"a:1", "b:2"}, "oci:"+home+"/image:tag", home+"/p.toml", "toon", "")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if from := s.Value("registry-mirrors").From; from != "~/.config/toolcell/config.toml:10" {
		t.Errorf("the mirrors are from %s", from)
	}
}

// TestMistakesInTheFileSayWhereAndWhatWasMeant.
func TestMistakesInTheFileSayWhereAndWhatWasMeant(t *testing.T) {
	inHome(t)
	for text, want := range map[string]string{
		"\n\nmax_timeout = 3":                ":3: there is no setting max_timeout; did you mean max-timeout?",
		"maxTimeout = 3":                     ":1: there is no setting maxTimeout; did you mean max-timeout?",
		"MCP_BRIDGE_OUTPUT_MODE = 'toon'":    ":1: there is no setting MCP_BRIDGE_OUTPUT_MODE; did you mean output?",
		"MCP_SERVERS_CONFIG = '/x'":          ":1: there is no setting MCP_SERVERS_CONFIG; did you mean servers-config?",
		"TOOLCELL_PIDS = 64":                 ":1: there is no setting TOOLCELL_PIDS; did you mean pids?",
		"timeuot = 3":                        ":1: there is no setting timeuot; did you mean timeout?",
		"color = 3":                          ":1: there is no setting color; toolcell help settings lists them",
		"[runs]\ntimeout = 3":                ":1: settings go at the top level: remove the [runs] header",
		"[pids]\nmax = 3":                    ":1: pids: it must be a number or a string",
		"timeout = 'soon'":                   `:1: timeout: "soon" is not a time; write 30, 30s or 2m`,
		"pids = 1":                           `:1: pids: "1" is not a whole number of at least 4`,
		"pids = [64]":                        ":1: pids: it must be a number or a string",
		"memory = true":                      ":1: memory: it must be a number or a string",
		"timeout = 1979-05-27":               ":1: timeout: it must be a number or a string",
		"image = 3":                          ":1: image: it must be a string",
		"allow-self-server = 1":              ":1: allow-self-server: it must be true or false",
		"mounts = [1]":                       ":1: mounts: it must be a list of strings",
		"mounts = ['/a:/a,/b:/b']":           `:1: mounts: "/a:/a,/b:/b" has ',' in it; make it two items`,
		"preload = ['a b']":                  `:1: preload: "a b" has ' ' in it; make it two items`,
		"mounts = ['data:/data']":            `:1: mounts: "data" is relative, and a client may start toolcell in any folder: write an absolute path`,
		"policy = 'p.toml'":                  `:1: policy: "p.toml" is relative`,
		"servers-config = '~ann/s.json'":     `:1: servers-config: "~ann/s.json" is relative`,
		"image = 'oci-archive:i.tar'":        `:1: image: "i.tar" is relative`,
		"runtime = 'podman'":                 ":1: runtime has no effect; leave it out",
		"timeout = 3\ntimeout = 4":           ":2: key timeout is already defined",
		"timeout = 3\npids = ":               ":2: expected a value, but the line ends",
		"timeout = 3 \x00":                   ":1: ",
		"output = '" + long("x", 9000) + "'": `:1: output: "` + long("x", 200) + ` [… 8800 bytes left out …]" is none of compact, toon, json`,
		long("k", 9000) + " = 1":             ":1: there is no setting ",
	} {
		writeUserFile(t, text)
		_, err := readFlags()
		var exit *console.ExitError
		_, isFile := errors.AsType[*FileError](err)
		if !isFile || !errors.As(err, &exit) || exit.Code != console.ExitUsage || !strings.HasPrefix(err.Error(), "~/.config/toolcell/config.toml"+want) || len(err.Error()) > 500 {
			t.Errorf("%.50q: %v\nwant %s", text, err, want)
		}
	}
}

func long(s string, n int) string { return strings.Repeat(s, n) }

// TestWhatIsNoFileOfSettings is an error that says what it is, and does not block.
func TestWhatIsNoFileOfSettings(t *testing.T) {
	home := inHome(t)
	for what, make := range map[string]func(path string) error{
		"is a directory":                    func(path string) error { return os.Mkdir(path, 0o700) },
		"is not a regular file":             func(path string) error { return unix.Mkfifo(path, 0o600) },
		"is larger than 1 MiB":              func(path string) error { return os.WriteFile(path, make1MiB(), 0o600) },
		"too many levels of symbolic links": func(path string) error { return os.Symlink(path, path) },
	} {
		if err := errors.Join(os.RemoveAll(ConfigDir()), os.MkdirAll(ConfigDir(), 0o700), make(UserFile())); err != nil {
			t.Fatal(err)
		}
		if _, err := readFlags(); err == nil || err.Error() != "~/.config/toolcell/config.toml: "+what {
			t.Errorf("%v, want %s", err, what)
		}
	}
	writeUserFile2 := func() error {
		return errors.Join(os.RemoveAll(ConfigDir()), os.MkdirAll(ConfigDir(), 0o755), os.WriteFile(UserFile(), []byte("pids = 64"), 0o000))
	}
	if err := writeUserFile2(); err != nil {
		t.Fatal(err)
	}
	ostest.Ordinary(t, func() {
		if _, err := readFlags(); err == nil || err.Error() != "~/.config/toolcell/config.toml: permission denied" {
			t.Errorf("unreadable: %v", err)
		}
	}, home, filepath.Dir(ConfigDir()), ConfigDir())
}

func make1MiB() []byte { return []byte("# " + long("x", 1<<20)) }

// TestAProjectLowersLimits, whatever they come from, and chooses the form of results.
func TestAProjectLowersLimits(t *testing.T) {
	inHome(t)
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ProjectFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeUserFile(t, "memory = '1g'\noutput = 'json'\n")
	t.Setenv("TOOLCELL_PIDS", "64")
	s, err := readFlags("--max-timeout", "5m")
	if err != nil {
		t.Fatal(err)
	}
	write("max-timeout = '1m'\nmemory = '2g'\npids = 32\ncpus = 1.5\npictures = 0\noutput = 'toon'\n")
	in, err := s.InProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Value{
		"max-timeout": {"1m", ".toolcell.toml:1", byProject},
		"memory":      {"1g", "~/.config/toolcell/config.toml:1", byFile}, // it is the smaller one
		"pids":        {"32", ".toolcell.toml:3", byProject},
		"cpus":        {"1.5", ".toolcell.toml:4", byProject}, // there was no limit
		"pictures":    {"0", ".toolcell.toml:5", byProject},
		"output":      {"toon", ".toolcell.toml:6", byProject},
		"timeout":     {Text: "30s"},
	} {
		if got := in.Value(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if !in.Lowered("pids") || in.Lowered("memory") || in.Runs.Limits.PIDs != 32 || in.Runs.Limits.Memory != 1<<30 {
		t.Errorf("the limits are %+v", in.Runs.Limits)
	}
	for name, want := range map[string]string{"pids": ".toolcell.toml:3", "output": ".toolcell.toml:6", "memory": "", "timeout": "", "image": "", "none": ""} {
		if v, overrides := ProjectOverride(name, dir); overrides != (want != "") || overrides && v.From != want {
			t.Errorf("the project overrides %s: %+v, %t", name, v, overrides)
		}
	}
	t.Setenv("MCP_BRIDGE_OUTPUT_MODE", "compact")
	if in, err = s.InProject(dir); err != nil || in.Bridge.Output != "compact" {
		t.Errorf("the user's variable: %q, %v", in.Bridge.Output, err)
	}
	own, err := s.InProject("")
	if err != nil || own.Runs.Limits.PIDs != 64 {
		t.Errorf("outside of a project: %d, %v", own.Runs.Limits.PIDs, err)
	}
}

// TestAProjectCannotDoMore: no key gives rights, and no file of the user's is read through a link.
func TestAProjectCannotDoMore(t *testing.T) {
	home := inHome(t)
	dir := t.TempDir()
	t.Chdir(dir)
	path := filepath.Join(dir, ProjectFile)
	s, err := readFlags()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		after, err := s.InProject(dir)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if after.Runs.MaxTimeout != s.Runs.MaxTimeout {
			t.Error("the settings are not as they were")
		}
	}
	for _, k := range All {
		if k.Name == "output" || slices.Contains(lowerable, k.Name) {
			continue
		}
		if err := os.WriteFile(path, []byte("max-timeout = 1\n"+k.Name+" = 'x'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(".toolcell.toml:2: " + k.Name + " cannot be set in .toolcell.toml; set it in ~/.config/toolcell/config.toml (a project may only")
	}
	for text, want := range map[string]string{
		"pids = 'x'":            ".toolcell.toml:1: pids: \"x\" is not a whole number",
		"output = 'x'":          ".toolcell.toml:1: output: \"x\" is none of compact",
		"timeuot = 1":           ".toolcell.toml:1: there is no setting timeuot; did you mean timeout?",
		"#" + long("x", 64<<10): ".toolcell.toml: is larger than 64 KiB",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(want)
	}
	secret := filepath.Join(home, "secret.toml")
	if err := errors.Join(os.WriteFile(secret, []byte("token = 'x'"), 0o600), os.Remove(path), os.Symlink(secret, path)); err != nil {
		t.Fatal(err)
	}
	refused(".toolcell.toml: is a link")
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	refused(".toolcell.toml: is not a regular file")
	sub := filepath.Join(dir, "sub")
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("pids = 0"), 0o600), os.Mkdir(sub, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(sub)
	refused(path + ":1: pids")
}

// TestTypos: variables of other programs are left alone.
func TestTypos(t *testing.T) {
	for name, want := range map[string]string{
		"TOOLCELL_TIMOUT":             "TOOLCELL_TIMEOUT",
		"TOOLCELL_OUTPUT_MODE":        "TOOLCELL_OUTPUT",
		"MCP_BRIDGE_OUTPUT":           "TOOLCELL_OUTPUT",
		"MCP_BRIDGE_IDLE_TIMEOUT":     "TOOLCELL_IDLE_TIMEOUT",
		"MCP_BRIDGE_imagE":            "TOOLCELL_IMAGE",
		"TOOLCELL_TIMEOUT":            "",
		"MCP_BRIDGE_TIMEOUT":          "",
		"TOOLCELL_INPUT_IMAGE":        "",
		"MCP_BRIDGE_INPUT_IMAGE":      "",
		"TOOLCELL_TEST_IMAGES":        "",
		"TOOLCELL_SOAK":               "",
		"TOOLCELL_SOAK_HOST":          "",
		"TOOLCELL_REPORT":             "",
		"TOOLCELL_TOKENS":             "",
		"TOOLCELL_VERSION":            "",
		"TOOLCELL_HOME":               "",
		"TOOLCELL_":                   "",
		"MCP_BRIDGE_ALLOWED_MCP_DIRS": "",
		"TIMOUT":                      "",
	} {
		got := Typo(name)
		if want != "" {
			want = "there is no setting " + name + "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestASectionIsTheBeginningOfNames of settings, and no other section is taken.
func TestASectionIsTheBeginningOfNames(t *testing.T) {
	inHome(t)
	writeUserFile(t, "pids = 64\n[record]\nvalues = 'all'\nredact = ['CUST-\\d+', 'a, b']\nmax-age = '36h'\nrequired = true\n")
	s, err := readFlags()
	if err != nil || s.Record.Keep != "all" || len(s.Record.Redact) != 2 || s.Record.Redact[1].String() != "a, b" || s.Record.KeepDays != 2 || !s.RecordRequired {
		t.Errorf("%+v, %v, %v", s.Record, s.RecordRequired, err)
	}
	for text, want := range map[string]string{
		"record-values = 'none'\n[record]\nvalues = 'all'": "config.toml:2: record-values is set twice",
		"[record]\nvalues = 'some'":                        "config.toml:1: record-values: ",
		"[record]\nvalue = 'all'":                          "remove the [record] header",
		"[runs]\npids = 64":                                "remove the [runs] header",
		"[record]\nredact = ['(']":                         "config.toml:1: record-redact: ",
		"[record]\nredact = ['x+', 'a|']":                  `config.toml:1: record-redact: "a|" matches an empty text`,
	} {
		writeUserFile(t, text)
		if _, err := readFlags(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestPatternsOfTheRecord, as a flag and a variable have them. One that matches an empty text would black out
// everything, and a list in brackets would be a set of characters.
func TestPatternsOfTheRecord(t *testing.T) {
	inHome(t)
	t.Setenv("TOOLCELL_RECORD_REDACT", "CUST-\\d+\n a, b \n\n[\"']x\n(?i)\\bkey(=|:)\\w+")
	s, err := readFlags()
	if err != nil || len(s.Record.Redact) != 4 || s.Record.Redact[1].String() != "a, b" {
		t.Errorf("%v, %v", s.Record.Redact, err)
	}
	for value, want := range map[string]string{
		`x*`: "empty", `a|`: "empty", `a||b`: "empty", `(a?)`: "empty", `^`: "empty", `\b`: "empty", `(?m)^\s*$`: "empty", `x{0,3}`: "empty", `(x*)+`: "empty", "ab\nx*": `"x*" matches an empty text`,
		`["CUST-\\d+"]`: "one pattern a line", `['CUST-\d+', 'b']`: "one pattern a line", `[ "a" ]`: "one pattern a line", `(`: "missing closing",
	} {
		t.Setenv("TOOLCELL_RECORD_REDACT", value)
		if _, err := readFlags(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TOOLCELL_RECORD_REDACT") {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
		t.Setenv("TOOLCELL_RECORD_REDACT", "")
		if _, err := readFlags("--record-redact", value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--record-redact %s: %v, want %s", value, err, want)
		}
	}
	for _, value := range []string{`x+`, `a|b`, `^a`, `\bx`, `x{1,3}`, `(?i)(cust|emp)-\d{3,}`, `[^ ]+@corp`, `.`} {
		if s, err := readFlags("--record-redact", value); err != nil || len(s.Record.Redact) != 1 {
			t.Errorf("%s: %v", value, err)
		}
	}
}
