package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
)

// examined runs doctor --json, in the way that prepare changes, and gives the
// checks by their codes.
func examined(t *testing.T, c *exec.Cmd) (checks map[string]doctor.Check, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var list []doctor.Check
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	checks = map[string]doctor.Check{}
	for _, c := range list {
		if checks[c.Code].Code != "" {
			t.Errorf("%s comes twice", c.Code)
		}
		checks[c.Code] = c
	}
	if want := exitFor(list); c.ProcessState.ExitCode() != want {
		t.Errorf("exit code %d, want %d\n%s", c.ProcessState.ExitCode(), want, out.String())
	}
	return checks, c.ProcessState.ExitCode()
}

//test:mainjob
func TestDoctor(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		checks, code := examined(t, h.command(t, nil, "doctor", "--json"))
		for _, want := range []string{"RC-KERNEL", "RC-USERNS", "RC-PROC", "RC-SECCOMP", "RC-LANDLOCK", "RC-STATE", "RC-FILES", "RC-PYTHON", "RC-SANDBOX"} {
			if checks[want].Status != doctor.CheckOK {
				t.Errorf("%s: %+v", want, checks[want])
			}
		}
		if !strings.Contains(checks["RC-SANDBOX"].Text, " ms") {
			t.Errorf("no time in %q", checks["RC-SANDBOX"].Text)
		}
		switch h.name {
		case "root", "user":
			if checks["RC-IDS"].Status != doctor.CheckOK {
				t.Errorf("no RC-IDS in %v", checks)
			}
		case "user-one-id":
			if c := checks["RC-IDS-SUBID"]; c.Status != doctor.CheckDegraded || !strings.Contains(c.Cure, " "+oneIDUser) || code != exitFail {
				t.Errorf("exit %d, %+v", code, c)
			}
		}
		// The people's form says the same.
		out, errs, again := h.run(t, nil, "doctor")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if again != code || errs != "" || !strings.HasPrefix(lines[len(lines)-1], "this host can run sandboxes") {
			t.Errorf("exit %d, want %d\n%s%s", again, code, out, errs)
		}
		for name, c := range checks {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, c.Status) && strings.Contains(l, " "+name+" ") }) {
				t.Errorf("no line of %s in\n%s", name, out)
			}
		}
	})
}

// TestDoctorOfBrokenHosts runs where something is really missing, in a user
// namespace of its own, in which an ordinary user may mount and set limits.
func TestDoctorOfBrokenHosts(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare: apt-get install util-linux")
	}
	const (
		path     = "PATH=/usr/sbin:/usr/bin:/sbin:/bin; "
		mountpnt = "mkdir -p $M; "
	)
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		for name, tt := range map[string]struct {
			script string // before doctor
			code   string
			status string
			text   string // of the check or its cure
			stays  bool   // sandboxes run all the same
		}{
			"one id":            {"", "RC-IDS-ROOT", doctor.CheckDegraded, "your own id", true},
			"covered /proc":     {"mount -t tmpfs none /proc/fs", "RC-PROC", doctor.CheckDegraded, "(/proc/fs)", true},
			"no user namespace": {"echo 0 >/proc/sys/user/max_user_namespaces", "RC-USERNS-SYSCTL", doctor.CheckFatal, "sysctl -w user.max_user_namespaces=15000", false},
			"no net namespace":  {"echo 0 >/proc/sys/user/max_net_namespaces", "RC-USERNS-SYSCTL", doctor.CheckFatal, "sysctl -w user.max_net_namespaces=15000", false},
			"no more of them": {
				"echo 1 >/proc/sys/user/max_user_namespaces; unshare -U sh -c 'echo up; exec sleep 60' >$M.up & until test -s $M.up; do sleep 0.01; done",
				"RC-USERNS-LIMIT", doctor.CheckFatal, "sysctl -w user.max_user_namespaces=15000", false,
			},
			"read-only state":   {mountpnt + "mount -t tmpfs -o ro none $M", "RC-STATE", doctor.CheckFatal, "read-only", false},
			"full state":        {mountpnt + "mount -t tmpfs -o size=64k none $M; head -c 99999 /dev/zero >$M/all 2>/dev/null", "RC-STATE-FULL", doctor.CheckFatal, "df -h ", false},
			"nearly full state": {mountpnt + "mount -t tmpfs -o size=50m none $M", "RC-STATE-FULL", doctor.CheckDegraded, "50 MiB", true},
			"noexec state":      {mountpnt + "mount -t tmpfs -o noexec none $M", "RC-STATE-NOEXEC", doctor.CheckDegraded, "--image host", true},
			"few files":         {"ulimit -n 300", "RC-FILES", doctor.CheckDegraded, "300", true},
		} {
			t.Run(name, func(t *testing.T) {
				mount := filepath.Join(h.home, "mount-"+strings.ReplaceAll(strings.ReplaceAll(name, "/", ""), " ", "-"))
				e := env{"M": mount, "BIN": bin}
				if strings.HasSuffix(name, " state") {
					e["TOOLCELL_STATE_DIR"] = filepath.Join(mount, "state")
				}
				c := h.command(t, e)
				c.Path, c.Args = unshare, []string{"unshare", "-Urmpf", "--mount-proc", "--kill-child", "/bin/sh", "-c", path + tt.script + "\n\"$BIN\" doctor --json"}
				checks, code := examined(t, c)
				got := checks[tt.code]
				if got.Status != tt.status || !strings.Contains(got.Text+got.Cure, tt.text) {
					t.Errorf("got %+v in %v", got, checks)
				}
				if !tt.stays {
					c = h.command(t, e)
					c.Path, c.Args = unshare, []string{"unshare", "-Urmpf", "--mount-proc", "--kill-child", "/bin/sh", "-c", path + tt.script + "\n\"$BIN\" exec --image host -c 1"}
					says, cure := got.Text+" ("+tt.code+")", "hint: "+got.Cure
					if name == "full state" { // more of its folders is there by now, and named
						says, cure = "("+tt.code+")", "hint: df -h "
					}
					out, err := c.CombinedOutput()
					if err == nil || c.ProcessState.ExitCode() != exitHost || !strings.Contains(string(out), says) || !strings.Contains(string(out), cure) || libraryWords.Match(out) {
						t.Errorf("a run says another thing: %v\n%s", err, out)
					}
				}
				want := exitHost
				if tt.stays {
					want = exitFail
				}
				if sandbox := checks["RC-SANDBOX"]; code != want || (sandbox.Status == doctor.CheckOK) != tt.stays {
					t.Errorf("exit %d, want %d; %+v", code, want, sandbox)
				}
			})
		}
	})
}

// TestDoctorWithoutNewPrivileges: newuidmap gets no rights then, and a single
// id has to do.
func TestDoctorWithoutNewPrivileges(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("needs setpriv: apt-get install util-linux")
	}
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		if lacks, _ := h.lacks("IDS"); lacks || h.name == "user-one-id" {
			return // has no use for newuidmap
		}
		c := h.command(t, nil)
		c.Path, c.Args = setpriv, []string{"setpriv", "--no-new-privs", bin, "doctor", "--json"}
		checks, code := examined(t, c)
		if checks["RC-SANDBOX"].Status != doctor.CheckOK || checks["RC-IDS-NOPRIVS"].Status != doctor.CheckDegraded || code != exitFail {
			t.Errorf("exit %d, %+v", code, checks)
		}
	})
}

// TestDoctorAsRootOfAContainer: what it says of missing capabilities is
// neither more nor less than what a sandbox needs.
func TestDoctorAsRootOfAContainer(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and setpriv: apt-get install util-linux")
	}
	h := firstHost(t)
	state, err := os.MkdirTemp("/var/tmp", "toolcell-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	// As a sandbox of root leaves it.
	if err := errors.Join(os.MkdirAll("/run/toolcell", 0o700), os.Chmod("/run/toolcell", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ caps, folder, want string }{
		{"-all,+setuid,+setgid,+chown,+dac_override", "0755", ""},
		{"-all,+setgid,+chown,+dac_override", "0755", "RC-CAPS"},
		{"-all,+setuid,+chown,+dac_override", "0755", "RC-CAPS"},
		{"-all,+setuid,+setgid,+dac_override", "0755", "RC-CAPS"},
		{"-all,+setuid,+setgid,+chown", "0755", "RC-CAPS"},
		{"-all", "0755", "RC-CAPS"},
		{"-sys_admin,-setfcap", "0755", ""},
		{"-sys_admin", "0700", "RC-STATE-CLOSED"},
	} {
		t.Run(tt.caps+" "+tt.folder, func(t *testing.T) {
			if out, err := exec.Command("chmod", tt.folder, state).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			e := env{"TOOLCELL_STATE_DIR": filepath.Join(state, "state")}
			c := h.command(t, e)
			c.Path, c.Args = setpriv, []string{"setpriv", "--bounding-set", tt.caps, bin, "doctor", "--json"}
			checks, code := examined(t, c)
			ran := tt.want == ""
			if (checks["RC-SANDBOX"].Status == doctor.CheckOK) != ran || !ran && (code != exitHost || checks[tt.want].Status != doctor.CheckFatal) || ran && code == exitHost {
				t.Errorf("exit %d, %+v", code, checks)
			}
			c = h.command(t, e)
			c.Path, c.Args = setpriv, []string{"setpriv", "--bounding-set", tt.caps, bin, "exec", "--image", "host", "-c", "1"}
			out, err := c.CombinedOutput()
			if (err == nil) != ran || !ran && (!strings.Contains(string(out), tt.want) || !strings.Contains(string(out), "hint: "+checks[tt.want].Cure)) {
				t.Errorf("a run says another thing: %v\n%s\n%+v", err, out, checks[tt.want])
			}
		})
	}
}

// TestIsolationNamesWhatTheMachineLacks, where that is known: what toolcell says
// is missing is missing, and it uses what there is.
func TestIsolationNamesWhatTheMachineLacks(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		isolation, _ := h.serve(t, env{"TOOLCELL_IMAGE": "host"}).python(t, "1").fields["isolation"].(string)
		for thing, name := range map[string]string{"IDS": "one-id", "CGROUP": "watched-limits"} {
			lacks, known := h.lacks(thing)
			if !known && os.Geteuid() == 0 && cgroup1() { // the users that the tests make
				lacks, known = h.name == "user-one-id" || h.name == "user" && thing == "CGROUP", true
			}
			if known && strings.Contains(isolation, name) != lacks {
				t.Errorf("isolation = %q, lacks %s: %v", isolation, thing, lacks)
			}
		}
	})
}

// exitFor is the exit code that these checks call for.
func exitFor(checks []doctor.Check) int {
	code := exitOK
	for _, c := range checks {
		switch {
		case c.Status == doctor.CheckFatal:
			return exitHost
		case c.Status != doctor.CheckOK:
			code = exitFail
		}
	}
	return code
}

// TestDoctorWarnsOfWhoMayChangeOurFiles: other users, and servers that code may be
// granted.
func TestDoctorWarnsOfWhoMayChangeOurFiles(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	dir := e["TOOLCELL_STATE_DIR"]
	h.must(t, e, "tools", "list")
	config := filepath.Join(t.TempDir(), "servers.json")
	entry := `{"mcpServers":{"files":{"command":"npx","args":["-y","server-for-files","` + dir + `"]}}}`
	if err := os.WriteFile(config, []byte(entry), 0o644); err != nil {
		t.Fatal(err)
	}
	e["TOOLCELL_SERVERS_CONFIG"] = config
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	checks, code := examined(t, h.command(t, e, "doctor", "--json"))
	for check, cure := range map[string]string{"RC-STATE-OTHERS": "chmod go-w " + dir, "RC-SERVER-FOLDER": config} {
		if c := checks[check]; c.Status != doctor.CheckDegraded || !strings.Contains(c.Text, dir) || !strings.Contains(c.Cure, cure) || code != exitFail {
			t.Errorf("exit %d, %s: %+v", code, check, c)
		}
	}
}

// TestCachesThatOthersCanChangeAreNotUsed: doctor and the run say so.
func TestCachesThatOthersCanChangeAreNotUsed(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = "host"
	cache := filepath.Join(e["TOOLCELL_STATE_DIR"], "cache")
	h.must(t, e, "exec", "-c", "print(1)")
	h.must(t, e, "packages", "list")
	for _, name := range []string{"packages", "packages/wheels", "images", "runner"} {
		dir := filepath.Join(cache, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		checks, code := examined(t, h.command(t, e, "doctor", "--json"))
		if c := checks["RC-STATE-OTHERS"]; c.Status != doctor.CheckDegraded || !strings.Contains(c.Cure, "chmod go-w "+dir) || code == exitOK {
			t.Errorf("%s: exit %d, %+v", name, code, c)
		}
		out, err := h.command(t, e, "exec", "-c", "# /// script\n# dependencies = ['six']\n# ///\nimport six").CombinedOutput()
		if want := dir + " can be written to by other users"; err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
