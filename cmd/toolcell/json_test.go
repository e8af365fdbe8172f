package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// withoutJSON are the commands without --json, and why.
var withoutJSON = map[string]string{
	"serve":          "its output is the protocol",
	"images refresh": "it is started by toolcell, and prints nothing",
	"completion":     "its output is a script",
	"ui":             "its output is links, and it does not end",
	"runs export":    "its output is JSON lines, or CSV",
	"__complete":     "its output is for those scripts",
}

// printing are command lines of every other command that print to standard output.
// What needs a sandbox, an image or the installed program is in e2e (TestJSONEverywhere).
var printing = map[string][]string{
	"exec":              nil,
	"doctor":            nil,
	"images pull":       nil,
	"images inspect":    nil,
	"images rm":         nil,
	"images verify":     nil,
	"packages add":      nil,
	"packages lock":     nil,
	"packages show":     nil,
	"packages list":     {"packages list"},
	"packages prune":    {"packages prune"},
	"images list":       {"images list"},
	"images prune":      {"images prune"},
	"servers list":      {"servers list"},
	"servers check":     {"servers check", "servers check gone"},
	"servers tools":     {"servers tools"},
	"servers search":    {"servers search anything"},
	"servers call":      nil,
	"servers pins":      {"servers pins"},
	"servers login":     nil,
	"servers logout":    {"servers logout remote"},
	"servers sandbox":   {"servers sandbox nope --empty-home"},
	"servers update":    nil,
	"servers set":       {"servers set asks TOKEN"},
	"servers trust":     {"servers trust .mcp.json"},
	"servers untrust":   {"servers untrust .mcp.json"},
	"tools list":        {"tools list"},
	"tools show":        {"tools show saved"},
	"tools export":      {"tools export"},
	"tools rm":          {"tools rm saved"},
	"approvals list":    {"approvals list"},
	"approvals show":    nil,
	"approvals approve": nil,
	"approvals deny":    nil,
	"runs list":         {"runs list", "runs list --calls"},
	"runs show":         nil,
	"runs stats":        {"runs stats"},
	"runs head":         {"runs head"},
	"runs verify":       {"runs verify"},
	"runs forget":       nil,
	"runs follow":       nil, // it does not end
	"settings list":     {"settings list"},
	"settings set":      {"settings set pids 64"},
	"settings unset":    {"settings unset pids"},
	"install":           {"install --list"},
	"uninstall":         {"uninstall cursor"},
	"upgrade":           {"upgrade"},
	"status":            {"status"},
	"purge":             {"purge --dry-run"},
	"version":           {"version"},
	"help":              {"help settings"},
}

var (
	// failsHere print what they found, and fail since a server does not start.
	failsHere = []string{"servers check", "servers check gone", "servers tools"}
	// emptyHere print a note only, since there is nothing to show.
	emptyHere = []string{"approvals list", "images list", "packages list", "servers tools", "servers search anything", "runs list", "runs list --calls", "runs stats", "runs head"}
	// textOnly have no --json.
	textOnly = []string{"--help", "--version", "exec --help", "help", "completion bash", "__complete zsh "}
)

// failing are command lines of every command that has --json that fail before or after
// they have something to print.
var failing = []string{
	"exec --image host", "exec no-such-file.py", "exec -c 1 --server nope --image oci:/nope", "exec --timeout soon -c 1", "exec -c",
	"doctor me", "doctor --no-such-flag", "images pull oci:/nope", "images pull", "images inspect nope", "images rm nope", "images verify nope",
	"images list x", "images prune --unused x", "images prune --max-size 5", "packages add", "packages add -e", "packages lock", "packages list x", "packages show nope", "packages prune --unused x", "servers list --allow-self-server x", "servers check nope", "servers check gone", "servers tools gone",
	"servers tools nope", "servers pins nope", "servers pins accept", "servers pins accept nope", "servers pins accept gone", "servers search", "servers call nope x", "servers call gone x", "servers call", "servers login nope", "servers logout nope",
	"servers set nope", "servers sandbox nope", "servers sandbox", "servers sandbox gone --yes", "servers update", "servers update nope", "servers update gone", "servers trust nope", "servers untrust", "tools list x", "tools show nope", "tools rm nope", "tools export nope",
	"approvals list x", "approvals nope", "approvals show", "approvals show nope", "approvals approve nope", "approvals approve nope --for ever", "approvals approve nope --revoke", "approvals deny nope", "approvals deny nope --stop --revoke",
	"runs list x", "runs nope", "runs list --since soon", "runs list --status nope", "runs list -n -1", "runs show", "runs show nope", "runs stats --until x", "runs verify --head nope", "runs head x", "runs forget", "runs forget nope",
	"settings list x", "settings nope", "settings set", "settings set pids", "settings set pids 1", "settings set nope 1", "settings unset nope",
	"install nope", "install", "uninstall nope", "uninstall", "upgrade x", "status x", "purge x", "purge", "version x", "help nope",
}

// TestEveryCommandHasJSON, or a reason why not.
func TestEveryCommandHasJSON(t *testing.T) {
	commands := map[string]bool{}
	eachCommand(testApp(), func(words []string, c *cli.Command) {
		name := strings.Join(words[1:], " ")
		if len(c.Subcommands) > 0 {
			return
		}
		commands[name] = true
		_, printed := printing[name]
		hasFlag := slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "json" })
		if hasReason := withoutJSON[name] != ""; hasFlag == hasReason || hasFlag != printed {
			t.Errorf("%s: has --json: %t, has a reason not to: %t, is printed here: %t", name, hasFlag, hasReason, printed)
		}
	})
	for name := range printing {
		if !commands[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}

// TestJSONIsAllThatIsPrinted on standard output, one array of objects, or exec's one
// object; also if the command fails.
func TestJSONIsAllThatIsPrinted(t *testing.T) {
	for _, lines := range printing {
		for _, line := range lines {
			checkJSON(t, line+" --json", typeIn(t, line+" --json"), slices.Contains(failsHere, line))
		}
	}
	for _, line := range failing {
		typed := strings.Replace(line, "exec", "exec --json", 1)
		if typed == line {
			typed += " --json"
		}
		checkJSON(t, typed, typeIn(t, typed), !strings.HasPrefix(typed, "install --json"))
	}
}

func checkJSON(t *testing.T, typed string, r typedIn, fails bool) {
	t.Helper()
	var rows []map[string]any
	var err error
	if strings.HasPrefix(typed, "exec") {
		rows = make([]map[string]any, 1)
		err = json.Unmarshal([]byte(r.out), &rows[0])
		if rows[0]["status"] == nil || rows[0]["error"] == nil {
			t.Errorf("%s: %s", typed, r.out)
		}
	} else {
		err = json.Unmarshal([]byte(r.out), &rows)
	}
	if err != nil || (r.code != 0) != fails || fails && !strings.Contains(r.errs, "toolcell: ") && !strings.Contains(r.out, `"error"`) {
		t.Errorf("%s: exit %d, %v\n%s\n%s", typed, r.code, err, r.out, r.errs)
	}
}

// TestFullDiskFails: a command whose output cannot be written says so.
func TestFullDiskFails(t *testing.T) {
	lines := append([]string{"install"}, textOnly...)
	for _, more := range printing {
		lines = append(lines, more...)
	}
	for _, line := range lines {
		for _, typed := range []string{line, line + " --json"} {
			if slices.Contains(emptyHere, typed) || typed != line && slices.Contains(textOnly, line) {
				continue
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r := typeInto(t, typed, full); r.code != 1 || !strings.Contains(r.errs, "no space left on device") {
				t.Errorf("%s: exit %d, %s", typed, r.code, r.errs)
			}
			full.Close()
		}
	}
}

// typedIn is what came of a command line.
type typedIn struct {
	out, errs string
	code      int
}

func typeIn(t *testing.T, line string) (r typedIn) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r = typeInto(t, line, out)
	r.out = read(t, out)
	return r
}

// typeInto runs a command line in this process, for a user who has a few servers, a
// client and a saved tool.
func typeInto(t *testing.T, line string, out *os.File) (r typedIn) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	for path, text := range map[string]string{
		"MCPs/servers.json": `{"mcpServers": {"gone": {"command": "/no/such/program"}, "remote": {"url": "http://127.0.0.1:1/"},
			"asks": {"command": "/no/such/program", "env": {"TOKEN": "${TOKEN}"}}}}`,
		"project/.mcp.json": `{"mcpServers": {"theirs": {"command": "/no/such/program"}}}`,
		"project/.git/HEAD": "ref: refs/heads/main\n",
		".cursor/mcp.json":  `{"mcpServers": {}}`,
		"project/input":     "secret\n",
	} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(home, "project"))
	d, err := settings.FindDirs("")
	if err != nil {
		t.Fatal(err)
	}
	if err := savedtools.Open(d.Tools(), currentProject()).Save(savedtools.Tool{Name: "saved", Source: "def saved():\n    pass\n"}); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open("input")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	errs, err := os.Create(filepath.Join(t.TempDir(), "errs"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, before := range []string{"install cursor", "servers trust .mcp.json"} {
		runCommandLine(append([]string{"toolcell"}, strings.Fields(before)...), null, null, null)
	}
	r.code = runCommandLine(append([]string{"toolcell"}, strings.Split(line, " ")...), in, out, errs)
	r.errs = read(t, errs)
	return r
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEmptyAnswersAreSentences with what to type next, and no heads of empty tables.
func TestEmptyAnswersAreSentences(t *testing.T) {
	for line, want := range map[string]string{
		"images list":               "toolcell: there are no images here yet\nhint: toolcell images pull python:3.14-slim\n",
		"images verify":             "toolcell: there are no images here to verify\nhint: toolcell images pull python:3.14-slim\n",
		"approvals":                 "toolcell: no questions are waiting\nhint: toolcell approvals list --watch waits for questions\n",
		"approvals deny nope":       "toolcell: there is no question \"nope\"; toolcell approvals list shows all\n",
		"servers search hi":         "toolcell: no tool of your servers fits \"hi\"\nhint: toolcell servers tools lists all of them\n",
		"images prune --max-size 5": "toolcell: --max-size: \"5\" is 5 bytes; to keep so many GiB: --max-size 5g\nhint: toolcell images prune --help\n",
		"servers tools nope":        "toolcell: there is no server \"nope\"; servers: \"theirs\", \"gone\", \"remote\"\n",
		"servers tools gne":         "toolcell: there is no server \"gne\"; did you mean \"gone\"? Servers: \"theirs\", \"gone\", \"remote\"\n",
	} {
		if r := typeIn(t, line); r.out != "" || !strings.HasSuffix(r.errs, want) {
			t.Errorf("%s: %q, %q", line, r.out, r.errs)
		}
	}
	if r := typeIn(t, "images prune"); r.out != "nothing to remove\n" {
		t.Errorf("images prune: %q", r.out)
	}
}
