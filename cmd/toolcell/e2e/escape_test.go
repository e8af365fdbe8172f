package e2e

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The escape battery: code that tries every way out of the sandbox that we
// know of, on every kind of host, with traps laid out for it on the host and
// in a neighboring sandbox. testdata/escape.py says what it tries.

//go:embed testdata/escape.py
var escapePy string

// TestEscapeBattery wants every attempt to fail, and no trap to be touched.
func TestEscapeBattery(t *testing.T) { escapeBattery(t, "host", "", nil) }

// TestEscapeBatteryWithTheNetwork has a way out, to a host that is not there.
func TestEscapeBatteryWithTheNetwork(t *testing.T) {
	dir, write := policyFolder(t)
	write("[network]\nallow = ['127.0.0.2:9']\nprivate = ['127.0.0.2']")
	escapeBattery(t, "host", "-network", env{"XDG_CONFIG_HOME": dir}, "https://127.0.0.2:9")
}

// TestEscapeBatteryOnAnImage has a root that belongs to the server's user, and
// where there is one id only, to the code itself.
func TestEscapeBatteryOnAnImage(t *testing.T) {
	escapeBattery(t, registry(t, "", "", "3.14")+"3.14-slim", "-image", nil)
}

func escapeBattery(t *testing.T, image, suffix string, more env, hosts ...string) {
	exe, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	// A server with a secret, which is not granted.
	config := fakeConfig(t, map[string]any{"vault": map[string]any{
		"command": exe, "env": map[string]string{fakeServerEnv: "filesystem", "TOKEN": newSecret()},
	}})
	inEveryWay(t, onEveryHost, func(t *testing.T, h *host) {
		t.Parallel()
		set := layTraps(t, h)
		// Only batteries use this state folder, and they share its images. What an earlier one
		// left in it otherwise, such as a saved tool, must not reach this one.
		own := filepath.Join(h.home, "battery-"+h.name)
		if err := os.RemoveAll(filepath.Join(own, "state")); err != nil {
			t.Fatal(err)
		}
		e := env{
			"TOOLCELL_IMAGE": image, "TOOLCELL_SERVERS_CONFIG": config, "TOOLCELL_MAX_TIMEOUT": "30m", "TOOLCELL_OUTPUT_BYTES": "1m",
			"TOOLCELL_STATE_DIR": own, trapVariable: set.secret,
		}
		maps.Copy(e, more)
		c := h.serve(t, e)
		if h.name != "no-proc" {
			c.wantStart(t, h)
		}
		neighbour := set.moveIn(t, c)
		r := c.call(t, map[string]any{"code": set.code(t, escapePy, c.cmd.Process.Pid), "servers": append([]string{"search"}, hosts...), "timeout": int(slow(170*time.Second) / time.Second)})
		if r.isError {
			t.Errorf("the run ended as %s: %v\n%s", r.status(), r.fields["error"], strings.Join(lines(r.fields["stderr"]), "\n"))
		}
		held := heldOf(t, attempts(t, strings.Join(lines(r.fields["stdout"]), "\n")))
		writeReport(t, h, "battery"+suffix, held)
		neighbour()
		for _, what := range set.touched() {
			t.Errorf("%s was touched", what)
		}
		if strings.Contains(r.text, "trap-") {
			t.Errorf("the result has the text of a trap:\n%s", r.text)
		}
		c.python(t, "import os\n_ = os.write(1, repr(sum(map(os.listdir, ('/tmp', '/workspace', '/workspace/out', '/dev/shm')), [])).encode())").want(t, "['out']")
	})
}

// TestEscapeBatteryHasTeeth makes the harmless attempts where nothing holds
// them: each has to succeed there, or it proves nothing in the sandbox.
func TestEscapeBatteryHasTeeth(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs the host's own Python")
	}
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	h := all[len(all)-1] // an ordinary user
	set := layTraps(t, h)
	set.values["outside"] = 1
	script := filepath.Join(set.dir, "escape.py")
	if err := os.WriteFile(script, []byte(set.code(t, escapePy, os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
	// Descriptors 4 and 5 are as careless as those of CVE-2024-21626.
	null, err1 := os.Open(os.DevNull)
	dir, err2 := os.Open(set.dir)
	file, err3 := os.Open(set.values["file"].(string))
	out, err4 := os.Create(filepath.Join(set.dir, "out"))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{null, dir, file, out} {
		defer f.Close()
	}
	c := h.command(t, env{trapVariable: set.secret})
	c.Path, c.Args = python, []string{python, script}
	c.ExtraFiles = []*os.File{null, dir, file}
	c.Stdout, c.Stderr = out, os.Stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	results := attempts(t, string(said))
	for _, a := range results {
		t.Run(a.Name, func(t *testing.T) {
			if a.Held || strings.HasPrefix(a.What, "broken") || a.What == "hung" {
				t.Errorf("not even the bare host lets it through: %s", a.What)
			}
		})
	}
	if len(results) < 35 {
		t.Errorf("only %d attempts were made", len(results))
	}
	got := set.touched()
	for _, want := range []string{"stream", "dgram", "socket", "port", "udp"} {
		if !slices.Contains(got, want) {
			t.Errorf("the trap %q did not notice: %v", want, got)
		}
	}
}

// TestSavedToolsTakeNoPlace: any run may save a tool under any name, and later
// runs, which may call more, must not run it in place of what they mean.
func TestSavedToolsTakeNoPlace(t *testing.T) {
	h := firstHost(t)
	state := filepath.Join(h.home, "poisoned")
	tools := filepath.Join(state, "state", "tools")
	if err := os.MkdirAll(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"print", "open", "len", "asyncio", "json", "value", "get", "e", "f", "argument"} {
		source := "import sys\nsys.exit('taken')\ndef " + name + "(*a, **k): sys.exit('taken')\n"
		if err := os.WriteFile(filepath.Join(tools, name+".py"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": state})
	c.python(t, `
import json
value = {"a": 1}
def f(argument): return argument
try: open("/none")
except OSError as e: print(e.errno, len(value), json.dumps(value.get("a")), f(2))
await asyncio.sleep(0)
print("fine")`).want(t, "2 1 1 2\nfine")
}

// An escape is what came of one attempt.
type escape struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	What string `json:"what,omitempty"`
}

// attempts reads what escape.py printed, and sees that nothing is missing.
func attempts(t *testing.T, out string) (all []escape) {
	t.Helper()
	head, rest, _ := strings.Cut(out, "\n")
	var first struct{ Attempts int }
	if err := json.Unmarshal([]byte(head), &first); err != nil {
		t.Fatalf("the first line is %q: %v", head, err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(rest) {
		var a escape
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Errorf("line %q: %v", line, err)
			continue
		}
		if seen[a.Name] {
			t.Errorf("two attempts are called %q", a.Name)
		}
		seen[a.Name] = true
		all = append(all, a)
	}
	if len(all) != first.Attempts || len(all) == 0 {
		t.Errorf("%d attempts were made of %d; the last was %+v", len(all), first.Attempts, all[max(len(all)-1, 0):])
	}
	return all
}

// heldOf says which attempts were held. All of them are to be.
func heldOf(t *testing.T, all []escape) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	for _, a := range all {
		held[a.Name] = a.Held
		t.Run(a.Name, func(t *testing.T) {
			if !a.Held {
				t.Error(a.What)
			}
		})
	}
	return held
}

func lines(field any) (out []string) {
	list, _ := field.([]any)
	for _, line := range list {
		out = append(out, fmt.Sprint(line))
	}
	return out
}
