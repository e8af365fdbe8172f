package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEscapeBatteryAsAServer makes the attempts as an MCP server in a sandbox, beside code and another
// server. Of what servers may do and code may not, escape.py makes no attempts.
func TestEscapeBatteryAsAServer(t *testing.T) {
	onEveryHost(t, func(t *testing.T, h *host) {
		t.Parallel()
		set := layTraps(t, h)
		shown := filepath.Join(set.dir, "shown")
		if err := errors.Join(os.Mkdir(shown, 0o755), os.Chmod(shown, 0o755)); err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(shown, "escape.py")
		kept := newSecret() // by the other server
		config := fakeConfig(t, map[string]any{
			"battery": map[string]any{"command": "python3", "args": []string{script}},
			"keeper":  map[string]any{"command": "/bin/sh", "args": []string{"-c", "echo " + kept + " > $HOME/kept"}},
		})
		dir, write := policyFolder(t)
		write(fmt.Sprintf("[servers.battery]\nsandbox = 'on'\nmounts = [{source = '%s'}]\n[servers.keeper]\nsandbox = 'on'\n", shown))
		own := filepath.Join(h.home, "battery-of-servers-"+h.name)
		if err := os.RemoveAll(own); err != nil {
			t.Fatal(err)
		}
		c := h.serve(t, env{
			"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config, "TOOLCELL_MAX_TIMEOUT": "30m", "TOOLCELL_OUTPUT_BYTES": "1m",
			"TOOLCELL_STATE_DIR": own, "XDG_CONFIG_HOME": dir, trapVariable: set.secret,
		})
		set.values["home"], set.values["homes"] = "/home/server", filepath.Join(own, "state", "servers")
		if err := os.WriteFile(script, []byte(set.code(t, escapePy, c.cmd.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
		c.python(t, "await mcp_keeper.keep()", "keeper") // which is no server, and ends
		neighbour := set.moveIn(t, c)
		code := uidsOf(set.values["neighbour_mark"].(string))
		r := c.call(t, map[string]any{
			"code":    "print(await mcp_battery.attack())",
			"servers": []string{"battery"}, "timeout": int(slow(170*time.Second) / time.Second),
		})
		if r.isError {
			t.Fatalf("the run ended as %s: %s", r.status(), r.text)
		}
		held := heldOf(t, attempts(t, strings.Join(lines(r.fields["stdout"]), "\n")))
		writeReport(t, h, "battery-server", held)
		neighbour()
		wantHomesApart(t, set.values["homes"].(string), code, kept)
		for _, what := range set.touched() {
			t.Errorf("%s was touched", what)
		}
		if strings.Contains(r.text, "trap-") {
			t.Errorf("the result has the text of a trap:\n%s", r.text)
		}
	})
}

// wantHomesApart wants the HOMEs of two servers to belong to IDs that neither the other nor code has,
// unless there is one ID only, and what a server keeps to stay.
func wantHomesApart(t *testing.T, dir, code, kept string) {
	t.Helper()
	homes, err := filepath.Glob(filepath.Join(dir, "*", "home"))
	if err != nil || len(homes) != 2 {
		t.Fatalf("the homes are %q, %v", homes, err)
	}
	above, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := strings.Fields(code)[:1]
	for _, home := range homes {
		info, err := os.Lstat(home)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := os.ReadFile(filepath.Join(home, "kept")); strings.Contains(home, "keeper") && !errors.Is(err, fs.ErrPermission) && string(body) != kept+"\n" {
			t.Errorf("%s has %q, %v", home, body, err)
		}
		id := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
		if single := info.Sys().(*syscall.Stat_t).Uid == above.Sys().(*syscall.Stat_t).Uid; !single && slices.Contains(seen, id) {
			t.Errorf("%s belongs to %s, which another sandbox has", home, id)
		}
		seen = append(seen, id)
	}
}

// TestKilledProcessLeavesNothingOfServers, at whichever moment of a server's start: no process, no sandbox
// and no file with the certificates that it trusts.
func TestKilledProcessLeavesNothingOfServers(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		dir, write := policyFolder(t)
		write("[servers.silent]\nsandbox = 'on'\nnetwork = ['api.example.com']\n")
		mark := marker()
		e := env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir, "TOOLCELL_SERVERS_CONFIG": writeConfig(t, map[string]any{
			"mcpServers": map[string]any{"silent": map[string]any{"command": "sleep", "args": []string{mark}}},
		})}
		var ids []string
		var started []proc
		for round := range 8 {
			c := h.serveRaw(t, e)
			c.sendCode(t, "await mcp_silent.speak()", "silent")
			if round == 0 {
				waitFor(t, "the server to run", func() bool { return alive(mark) })
				if files, err := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*", "roots-*")); len(files) != 1 {
					t.Errorf("its certificates are in %q, %v", files, err)
				}
			} else {
				time.Sleep(rand.N(300 * time.Millisecond))
			}
			started = append(started, c.kill9(t)...)
			ids = append(ids, sandboxIDs(h)...)
			_ = c.stop()
		}
		waitFor(t, "the sandboxes to be gone", func() bool { return !slices.ContainsFunc(started, proc.alive) })
		gone(t, mark)
		wantSwept(t, h, ids)
	})
}
