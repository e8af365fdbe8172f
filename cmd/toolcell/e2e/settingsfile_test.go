package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
)

// TestServeReadsSettingsAgain: what changes in the user's file, or in the project's, counts for the
// next run, and a mistake in it leaves the last good values.
func TestServeReadsSettingsAgain(t *testing.T) {
	h, home, project := firstHost(t), t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".config", "toolcell", "config.toml")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{home, project} {
		if err := os.Chmod(dir, 0o777); err != nil { // serve may be an ordinary user
			t.Fatal(err)
		}
	}
	write(file, "memory = '256m'\n")
	cmd := h.command(t, env{"TOOLCELL_IMAGE": "host", "HOME": home}, "serve")
	cmd.Dir = project
	c := connect(t, cmd)
	memory := func(want string) reply {
		t.Helper()
		r := c.python(t, "print(open('/proc/meminfo').readline().split()[1])")
		if out, _ := r.fields["stdout"].([]any); len(out) != 1 || out[0] != want {
			t.Errorf("got %v, want %s", r.fields, want)
		}
		return r
	}
	memory("262144")
	write(file, "memory = '128m'\noutput = 'json'\n")
	if r := memory("131072"); !strings.Contains(r.text, `"status": "success"`) {
		t.Errorf("the result is %s", r.text)
	}
	write(file, "memory = '512m'\nmemry = 1\n")
	const said = "the settings now have a mistake, so the earlier ones stay in effect: ~/.config/toolcell/config.toml:2: there is no setting memry; did you mean memory?"
	if r := memory("131072"); !strings.Contains(r.text, said) {
		t.Errorf("a mistake: %s", r.text)
	}
	if r := memory("131072"); strings.Contains(r.text, "settings") || !strings.Contains(c.stderr.String(), "level=ERROR") {
		t.Errorf("the second run: %s\n%s", r.text, c.stderr)
	}
	write(file, "memory = '256m'\nimage = 'python:3.13'\nsessions = 1\n")
	write(filepath.Join(project, ".toolcell.toml"), "memory = '64m'\n")
	memory("65536")
	if log := c.stderr.String(); !strings.Contains(log, `take effect after a restart" settings=[sessions]`) {
		t.Errorf("the log has %s", log) // the image is a variable's
	}
	write(filepath.Join(project, ".toolcell.toml"), "memory = '1g'\nimage = 'host'\n")
	memory("262144")
	if log := c.stderr.String(); !strings.Contains(log, ".toolcell.toml:2: image cannot be set in .toolcell.toml") {
		t.Errorf("the log has %s", log)
	}
}

// TestWhatCodeRunsInFollowsTheSettings: the image, the folders that code sees and its user are those of
// the settings at each run. A session keeps its image, but not its folders.
func TestWhatCodeRunsInFollowsTheSettings(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		dir := sharedFolder(t)
		data, project := h.mountFolder(t, dir, "data", 0o755), h.project(t, filepath.Join(dir, "shop"), "prices.csv")
		h.own(t, filepath.Join(data, "file.txt"))
		if err := os.Chmod(filepath.Join(data, "file.txt"), 0o644); err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(dir, "config")
		write := func(lines ...string) {
			t.Helper()
			h.put(t, filepath.Join(config, "toolcell", "config.toml"), strings.Join(lines, "\n"))
		}
		const image = "image = 'host'"
		write(image)
		cmd := h.command(t, env{"XDG_CONFIG_HOME": config}, "serve")
		cmd.Dir = project
		c := connectAs(t, cmd, withoutRoots, nil)
		sees := func(session, want string) reply {
			t.Helper()
			r := c.call(t, map[string]any{"session": session, "code": "import os\nprint(os.getuid(), os.path.exists('/data/file.txt'), os.path.exists('/project/prices.csv'), os.path.exists('/etc/debian_version'))"})
			if out, _ := r.fields["stdout"].([]any); len(out) != 1 || out[0] != want {
				t.Errorf("got %v, want %s", r.fields, want)
			}
			return r
		}
		sees("", "65534 False False False")
		sees("s", "65534 False False False")
		mounts := "mounts = ['" + data + ":/data']"
		write(image, mounts)
		sees("", "65534 True False False")
		if r := sees("s", "65534 True False False"); !strings.Contains(r.text, "the settings have other mounts now") {
			t.Errorf("the session: %s", r.text)
		}
		write(image, mounts, "project = 'read'", "container-user = '1234:1234'")
		sees("", "1234 True True False")
		write(image)
		sees("", "65534 False False False")
		if r := sees("s", "65534 False False False"); !strings.Contains(r.text, "was ended") {
			t.Errorf("the session: %s", r.text)
		}
		write("image = 'oci:" + filepath.Join(dir, "nowhere") + "'")
		if r := c.python(t, "print(1)"); r.fields["status"] != "sandbox_error" || !strings.Contains(r.text, "nowhere") {
			t.Errorf("an image that is not there: %s", r.text)
		}
		write(image, "mounts = ['/var/../etc:/data']")
		if r := c.python(t, "print(1)"); r.fields["status"] != "sandbox_error" || !strings.Contains(r.text, `"/etc" cannot be mounted: /etc is the system's`) {
			t.Errorf("a mount that is refused: %s", r.text)
		}
		write(image)
		sees("", "65534 False False False")
		_, v := pythons()
		write("image = '" + registry(t, "", "", v) + v + "-slim'")
		if r := c.python(t, "import os; print(os.path.exists('/etc/debian_version'))"); !strings.Contains(r.text, "True") {
			t.Errorf("another image: %s", r.text)
		}
		out, errs, _ := h.run(t, env{"XDG_CONFIG_HOME": config}, "status", "--json")
		if strings.Count(out, fmt.Sprintf(`"pid": %d,`, cmd.Process.Pid)) != 1 {
			t.Errorf("the process is shown as %s%s", out, errs)
		}
		if log := c.stderr.String(); strings.Contains(log, "after a restart") {
			t.Errorf("the log has %s", log)
		}
	})
}

// TestOldNamesOfVariablesCount: clients' files that were written before have them.
func TestOldNamesOfVariablesCount(t *testing.T) {
	h := firstHost(t)
	e := env{
		"MCP_BRIDGE_IMAGE": "host", "MCP_BRIDGE_MEMORY": "128m", "MCP_BRIDGE_OUTPUT_MODE": "json", "MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT": "9m",
		"MCP_SERVERS_CONFIG": fakeConfig(t, nil), "MCP_BRIDGE_RUNTIME": "podman",
	}
	c := h.serve(t, e)
	r := c.python(t, "from mcp import runtime\nprint(open('/proc/meminfo').readline().split()[1], len(runtime.discovered_servers()) > 0)")
	if out, _ := r.fields["stdout"].([]any); len(out) != 1 || out[0] != "131072 True" || !strings.Contains(r.text, `"status": "success"`) {
		t.Errorf("got %s", r.text)
	}
	out, errs, code := h.run(t, e, "settings", "--json")
	if code != 0 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	for name := range e {
		if !strings.Contains(out, `"from": "`+name+`"`) {
			t.Errorf("%s does not count:\n%s", name, out)
		}
	}
}

// TestDoctorShowsBrokenSettings, where no other command starts.
func TestDoctorShowsBrokenSettings(t *testing.T) {
	h, config, dir := firstHost(t), t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(config, "toolcell", "config.toml"): "pids = 64\nmemory = \n", filepath.Join(dir, ".toolcell.toml"): "policy = 'x'\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := h.command(t, env{"XDG_CONFIG_HOME": config, "TOOLCELL_IMAGE": "host"}, "doctor", "--json")
	cmd.Dir = dir
	checks, _ := examined(t, cmd)
	for code, want := range map[string]string{
		"RC-CONFIG":         "serve and commands refuse to start: " + config + "/toolcell/config.toml:2: expected a value, but the line ends",
		"RC-PROJECT-CONFIG": ".toolcell.toml:1: policy cannot be set in .toolcell.toml",
	} {
		if got := checks[code]; got.Status != doctor.CheckDegraded || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %+v, want %s", code, got, want)
		}
	}
	file := filepath.Join(config, "toolcell", "config.toml")
	if err := errors.Join(os.WriteFile(file, []byte("pids = 64\n"), 0o644), os.Chmod(file, 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd = h.command(t, env{"XDG_CONFIG_HOME": config, "TOOLCELL_IMAGE": "host"}, "doctor", "--json")
	if checks, _ = examined(t, cmd); checks["RC-CONFIG"].Cure != "chmod go-w "+file {
		t.Errorf("%+v", checks["RC-CONFIG"])
	}
}

// TestInstallWritesNewNamesOfVariables: an entry that has a value under the old one stays as it is.
func TestInstallWritesNewNamesOfVariables(t *testing.T) {
	w := newWorkshop(t)
	const entry = `{"mcpServers": {"toolcell": {"command": "PROGRAM", "args": ["serve"], "env": {"MCP_BRIDGE_MEMORY": "1g"}}}}`
	text := strings.ReplaceAll(entry, "PROGRAM", bin)
	file := w.put(t, "home/.cursor/mcp.json", text)
	for _, args := range [][]string{{}, {"--env", "TOOLCELL_MEMORY=1g"}, {"--env", "MCP_BRIDGE_MEMORY=1g"}} {
		w.must(t, "already there", append([]string{"install", "cursor"}, args...)...)
		if got := read(t, file); got != text {
			t.Errorf("%q: got %s", args, got)
		}
	}
	w.must(t, "updated", "install", "cursor", "--env", "MCP_BRIDGE_MEMORY=2g")
	if got := read(t, file); strings.Contains(got, "MCP_BRIDGE") || !strings.Contains(got, `"TOOLCELL_MEMORY": "2g"`) {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{
		"TOOLCELL_MEMROY=1g":     "there is no such setting; did you mean TOOLCELL_MEMORY?",
		"MCP_BRIDGE_OUTPUT=json": "there is no such setting; did you mean TOOLCELL_OUTPUT?",
		"MCP_BRIDGE_PIDS=1":      "setting MCP_BRIDGE_PIDS: ",
		"TOOLCELL_MOUNTS=a:/a":   "--env TOOLCELL_MOUNTS: \"a\" is relative",
	} {
		out, err := w.command(t, w.env, "install", "cursor", "--env", name).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	out, err := w.command(t, w.env, "install", "cursor", "--env", "TOOLCELL_PIDS=64", "--env", "MCP_BRIDGE_PIDS=65").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `--env gives TOOLCELL_PIDS two values, "64" and "65"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestServeStartsWhenAMountIsAbsent, such as on a disk that is not connected: a client would not show
// why it ended. Each run says why it does not start.
func TestServeStartsWhenAMountIsAbsent(t *testing.T) {
	h, config, disk := firstHost(t), t.TempDir(), sharedFolder(t)+"/disk"
	file := filepath.Join(config, "toolcell", "config.toml")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Chmod(config, 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("pids = 64\nmounts = ['" + disk + ":/data']\n")
	e := env{"XDG_CONFIG_HOME": config, "TOOLCELL_IMAGE": "host"}
	said := file + ":2: mounts: " + disk + " does not exist"
	c := h.serve(t, e)
	for range 2 {
		if r := c.python(t, "print('ran')"); r.status() != "sandbox_error" || !strings.Contains(r.text, said) || !strings.Contains(r.text, "toolcell settings unset mounts") {
			t.Errorf("a run: %s", r.text)
		}
	}
	if log := c.stderr.String(); !strings.Contains(log, said) {
		t.Errorf("the log has %s", log)
	}
	out, errs, code := h.run(t, e, "exec", "-c", "print('ran')")
	if code != exitUsage || out != "" || errs != "toolcell: "+said+"\nhint: connect the disk that it is on, or correct the path; to run without mounts: toolcell settings unset mounts\n" {
		t.Errorf("exec: exit %d, %q, %q", code, out, errs)
	}
	cmd := h.command(t, e, "doctor", "--json")
	if checks, _ := examined(t, cmd); checks["RC-MOUNT"].Status != doctor.CheckDegraded || !strings.Contains(checks["RC-MOUNT"].Text, said) {
		t.Errorf("doctor: %+v", checks["RC-MOUNT"])
	}
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	c.python(t, "import os\nprint(os.listdir('/data'))").want(t, "[]")
	if err := os.Remove(disk); err != nil {
		t.Fatal(err)
	}
	if r := c.python(t, "print('ran')"); r.status() != "sandbox_error" || !strings.Contains(r.text, said) {
		t.Errorf("disconnected: %s", r.text)
	}
	write("pids = 64\n") // as settings unset does
	c.python(t, "print('ran')").want(t, "ran")
}
