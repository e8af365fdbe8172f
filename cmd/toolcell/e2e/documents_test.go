package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// TestDocuments does what the documents say, top to bottom, each in a home of
// its own: commands in a shell, Python through an MCP client. The images come
// from a registry on this host, which is the mirror of all others.
func TestDocuments(t *testing.T) {
	t.Parallel()
	names := documents(t)
	layout := rootfstest.Layout(t, "3.14")
	mirror := rootfstest.StartRegistry(t, "", "")
	rootfstest.PushLayoutAs(t, layout, mirror+"/library/python:3.14-slim", "", "")
	onHosts(t, func(t *testing.T, h *host) {
		if h.name == "user-one-id" {
			return // nothing in the documents depends on it
		}
		cache := newDocFolder(t, h, "docs-cache-")
		if _, errs, code := h.run(t, docEnv(h, h.home, cache, mirror), "images", "pull", "python:3.14-slim"); code != 0 {
			t.Fatalf("pulling: exit %d\n%s", code, errs)
		}
		for _, name := range names {
			if testedElsewhere[name] != "" {
				continue
			}
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				home := newDocFolder(t, h, "docs-")
				d := &reader{host: h, home: home, env: docEnv(h, home, cache, mirror), clients: map[string]*client{}}
				d.settle(t)
				d.read(t, name)
			})
		}
	})
}

// testedElsewhere are documents with tests of their own, which have what those
// need: a prompt on a terminal, or the settings of building.
var testedElsewhere = map[string]string{"docs/shell.md": "TestShellDocument", "docs/install.md": "TestInstallDocument"}

// A reader follows the steps of a document.
type reader struct {
	*host
	home    string
	env     env
	clients map[string]*client // by image
	printed string             // by the last block
}

// newDocFolder makes a folder for the user of the host.
func newDocFolder(t *testing.T, h *host, prefix string) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if h.cred != nil {
		if err := os.Chown(dir, int(h.cred.Uid), int(h.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func docEnv(h *host, home, cache, mirror string) env {
	return env{
		"HOME": home, "PATH": filepath.Dir(bin) + ":" + h.path, "TOOLCELL_STATE_DIR": "", "XDG_CACHE_HOME": cache,
		"TOOLCELL_REGISTRY_MIRRORS": "docker.io=http://" + mirror + " ghcr.io=http://" + mirror,
	}
}

// settle gives the reader a project to work in, and the servers of the examples.
func (d *reader) settle(t *testing.T) {
	t.Helper()
	for name, text := range exampleServers(t, d.home) {
		d.put(t, name, text)
	}
	d.put(t, "project/notes.txt", "a project\n")
}

// exampleServers are the files of a home that has the servers of the examples,
// which the documents use: a config file, and their data.
func exampleServers(t *testing.T, home string) map[string]string {
	t.Helper()
	servers := map[string]any{}
	files := map[string]string{}
	for name, data := range map[string]string{"calendar": "week.ics", "tasks": "todo.txt"} {
		exe, err := exampleServer(name)
		if err != nil {
			t.Fatal(err)
		}
		servers[name] = map[string]any{"command": exe, "args": []string{filepath.Join(home, data)}}
		files[data] = read(t, filepath.Join("../../../examples/data", data))
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	files["MCPs/planning.json"] = string(config)
	return files
}

var exampleBuilds sync.Mutex

// exampleServer builds one of the examples, once, where every user can run it.
func exampleServer(name string) (path string, err error) {
	exampleBuilds.Lock()
	defer exampleBuilds.Unlock()
	path = filepath.Join(shared, "example-"+name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	out, err := exec.Command("go", "build", "-o", path, "../../../examples/"+name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return path, os.Chmod(path, 0o755)
}

// put makes a file in the home that is the reader's own.
func (d *reader) put(t *testing.T, path, text string) {
	t.Helper()
	c := d.bash(t, d.home, `mkdir -p -- "$(dirname -- "$1")" && cat >"$1"`, path)
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("writing %s: %v\n%s", path, err, out)
	}
}

// bash prepares a script that the reader types.
func (d *reader) bash(t *testing.T, dir, script string, args ...string) *exec.Cmd {
	t.Helper()
	c := d.command(t, d.env)
	c.Env = slices.DeleteFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, "TOOLCELL_STATE_DIR=") })
	c.Path, c.Args, c.Dir = "/bin/bash", append([]string{"bash", "-euo", "pipefail", "-c", script, "bash"}, args...), dir
	return c
}

// read does what each block of a document says.
func (d *reader) read(t *testing.T, name string) {
	text, err := os.ReadFile(filepath.Join("../../..", name))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docBlocks(string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docBlock) bool { return b.mark == "not run" })
	did := 0
	for _, b := range withNeed(blocks, false) {
		if err := d.follow(t, b); err != nil {
			t.Errorf("%s:%d: %v\n%s", name, b.line, err, b.text)
		}
		if b.lang != "text" {
			did++
		}
	}
	if least := atLeast[name]; did < least {
		t.Errorf("%s: %d blocks were followed, %d or more are expected", name, did, least)
	}
}

// withNeed returns the blocks that are marked with a need, or the others, each with
// what it prints.
func withNeed(blocks []docBlock, marked bool) (some []docBlock) {
	needs := false
	for _, b := range blocks {
		if b.mark != "prints" {
			needs = b.mark == "needs"
		}
		if needs == marked {
			some = append(some, b)
		}
	}
	return some
}

// atLeast is how many blocks there are at least in the documents that are there
// to be followed: a reader of blocks that finds none would find no fault.
var atLeast = map[string]int{"README.md": 3, "docs/guide.md": 25}

// follow does what one block says, and gives what went another way.
func (d *reader) follow(t *testing.T, b docBlock) error {
	if b.mark == "file" {
		d.put(t, filepath.Join("project", b.arg), b.text+"\n")
		if b.lang == "python" || b.lang == "sh" {
			return nil
		}
	}
	switch b.lang {
	case "sh":
		return d.script(t, b, b.text)
	case "console":
		return d.console(t, b)
	case "python":
		return d.python(t, b)
	case "json":
		var v any
		return json.Unmarshal([]byte(b.text), &v)
	case "toml":
		_, err := toml.JSON([]byte(b.text))
		return err
	case "yaml":
		var v any
		return yaml.Unmarshal([]byte(b.text), &v)
	}
	if b.mark == "prints" && !docMatches(b.text, d.printed) {
		return fmt.Errorf("the block before it printed\n%s\nand the document shows", d.printed)
	}
	return nil
}

// script runs what is typed. What it printed is kept.
func (d *reader) script(t *testing.T, b docBlock, script string) error {
	dir := filepath.Join(d.home, "project")
	if b.mark == "checkout" {
		if d.cred != nil {
			return nil // the source is another's
		}
		dir = "../../.."
	}
	c := d.bash(t, dir, script)
	if b.mark == "checkout" {
		c.Env = append(c.Env, goEnvironment(t)...)
	}
	both := &syncBuffer{}
	c.Stdout, c.Stderr = both, both
	ctx, cancel := context.WithTimeout(t.Context(), slow(2*time.Minute))
	defer cancel()
	if err := c.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	err := c.Wait()
	stop()
	d.printed = both.String()
	want := "0"
	if b.mark == "exit" {
		want = b.arg
	}
	allowed := strings.Split(want, " or ")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if got := fmt.Sprint(c.ProcessState.ExitCode()); !slices.Contains(allowed, got) {
		return fmt.Errorf("exit %s, want %s\n%s", got, want, d.printed)
	}
	return nil
}

var docNotes = regexp.MustCompile(`(?m)^toolcell: note: .*\n`)

// console runs command by command, and compares what each prints.
func (d *reader) console(t *testing.T, b docBlock) error {
	commands := b.commands()
	if len(commands) == 0 {
		return errors.New(`no line begins with "$ "`)
	}
	codes := strings.Split(b.arg, ", ")
	if b.mark == "exit" && len(codes) != len(commands) {
		return fmt.Errorf("%d exit codes for %d commands", len(codes), len(commands))
	}
	for i, command := range commands {
		as := b
		if b.mark == "exit" {
			as.arg = codes[i]
		}
		if err := d.script(t, as, command.line); err != nil {
			return fmt.Errorf("%s: %w", command.line, err)
		}
		// Notes say what this kind of host lacks.
		if printed := docNotes.ReplaceAllString(d.printed, ""); !docMatches(command.prints, printed) {
			return fmt.Errorf("%s printed\n%s", command.line, printed)
		}
	}
	return nil
}

// python runs a block through run_python.
func (d *reader) python(t *testing.T, b docBlock) error {
	image := ""
	args := map[string]any{"code": b.text, "servers": []string{"*"}}
	switch b.mark {
	case "image":
		image, args["timeout"] = b.arg, 100
	case "session":
		args["session"] = b.arg
	}
	c := d.clients[image]
	if c == nil {
		cmd := d.bash(t, filepath.Join(d.home, "project"), "exec toolcell serve")
		if image != "" {
			cmd.Env = append(cmd.Env, "TOOLCELL_IMAGE="+image, "TOOLCELL_MEMORY=1g")
		}
		c = connect(t, cmd)
		d.clients[image] = c
	}
	r := c.call(t, args)
	d.printed = strings.Split(r.text, "\nnote: ")[0]
	if b.mark == "error" {
		if !r.isError || !strings.Contains(r.text, b.arg) {
			return fmt.Errorf("want an error with %q, got\n%s", b.arg, r.text)
		}
	} else if r.isError {
		return fmt.Errorf("it failed:\n%s", r.text)
	}
	return nil
}
