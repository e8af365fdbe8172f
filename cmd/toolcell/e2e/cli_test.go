package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//test:mainjob
func TestExec(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		file := filepath.Join(h.home, "code.py")
		if err := os.WriteFile(file, []byte("print('from a file')\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			args           []string
			stdout, stderr string // stderr: a part of it
			code           int
		}{
			"output":          {[]string{"-c", "import sys; print('out'); print('err', file=sys.stderr)"}, "out\n", "err\n", 0},
			"value":           {[]string{"-c", "6 * 7"}, "42\n", "", 0},
			"file":            {[]string{file}, "from a file\n", "", 0},
			"flags first":     {[]string{"--timeout", "60", "--output=json", "-q", file}, "```json\n", "", 0},
			"flags after -c":  {[]string{"-c", "1", "--output=json"}, "```json\n", "", 0},
			"dash as a value": {[]string{"-c", "-5"}, "-5\n", "", 0},
			"theirs":          {[]string{file, "-c", "1"}, "from a file\n", "", 0},
			"exit code":       {[]string{"-c", "import sys; sys.exit(7)"}, "", "", 7},
			"exception":       {[]string{"-c", "1/0"}, "", "ZeroDivisionError", 1},
			"killed":          {[]string{"-c", "import os; os.kill(os.getpid(), 9)"}, "", "signal 9", 137},
			"timeout":         {[]string{"--timeout", aSecond(), "-c", "while True: pass"}, "", "toolcell: timeout: the code ran longer than " + aSecond() + " s", 1},
			"compact":         {[]string{"--output", "compact", "-c", "print(1)\n2"}, "1\n2\n", "", 0},
			"json":            {[]string{"--output", "json", "-c", "1/0"}, "", "", 1},
			"toon":            {[]string{"--output", "toon", "-c", "print(1)"}, "```toon\nstatus: success\nsummary: Success\nexitCode: 0\nstdout[1]: \"1\"\n", "", 0},
			"no code":         {[]string{"-c", ""}, "", "code is empty", 2},
			"no such file":    {[]string{"/no/such/file"}, "", "no such file", 2},
			"unknown flag":    {[]string{"--no-such-flag"}, "", "no-such-flag", 2},
			"unknown server":  {[]string{"--server", "zzz", "-c", "1"}, "", "zzz", 2},
			"no such image":   {[]string{"--image", "oci:/no/such/dir", "-c", "1"}, "", "/no/such/dir", 1},
			"a strange image": {[]string{"--image", "UPPER CASE", "-c", "1"}, "", "UPPER CASE", 1},
		} {
			t.Run(name, func(t *testing.T) {
				args := append([]string{"exec"}, tt.args...)
				if !strings.HasSuffix(name, "image") {
					args = append([]string{"exec", "--image", "host"}, tt.args...)
				}
				out, errs, code := h.run(t, nil, args...)
				if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--output") }) && strings.HasPrefix(out, tt.stdout) {
					out = tt.stdout // notes on what this host lacks may follow
				}
				if code != tt.code || !strings.Contains(errs, tt.stderr) || (tt.stdout != "" && out != tt.stdout) {
					t.Errorf("exit %d\nstdout %q\nstderr %q\nwant exit %d, stdout %q, stderr with %q", code, out, errs, tt.code, tt.stdout, tt.stderr)
				}
			})
		}
	})
}

// aSecond is a time in which Python starts, but no longer.
func aSecond() string { return strconv.Itoa(seconds(1)) }

//test:mainjob
func TestExecReadsStandardInput(t *testing.T) {
	h := firstHost(t)
	for _, args := range [][]string{{"exec", "--image", "host"}, {"exec", "--image", "host", "-"}} {
		c := h.command(t, nil, args...)
		c.Stdin = strings.NewReader("print('piped')")
		if out, err := c.Output(); err != nil || string(out) != "piped\n" {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

//test:mainjob
func TestSettingsFromTheEnvironment(t *testing.T) {
	h := firstHost(t)
	for name, tt := range map[string]struct {
		e    env
		code string
		want string
	}{
		"user":           {env{"TOOLCELL_CONTAINER_USER": "1234:5678"}, "import os; print(os.getuid(), os.getgid())", "1234 5678\n"},
		"timeout":        {env{"TOOLCELL_TIMEOUT": aSecond()}, "while True: pass", "longer than " + aSecond() + " s"},
		"maximum":        {env{"TOOLCELL_MAX_TIMEOUT": aSecond() + "s", "TOOLCELL_TIMEOUT": ""}, "while True: pass", "longer than " + aSecond() + " s"},
		"podman":         {env{"TOOLCELL_RUNTIME": "podman"}, "print(1)", "1\n"},
		"empty is unset": {env{"TOOLCELL_MEMORY": "", "TOOLCELL_CPUS": "", "TOOLCELL_TIMEOUT": " "}, "print(1)", "1\n"},
		"several":        {env{"TOOLCELL_PRELOAD": " json , xml.dom ", "TOOLCELL_START": "Container"}, "print(1)", "1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.e["TOOLCELL_IMAGE"] = "host"
			if out, errs, _ := h.run(t, tt.e, "exec", "-c", tt.code); !strings.Contains(out+errs, tt.want) {
				t.Errorf("got %q and %q, want %q", out, errs, tt.want)
			}
		})
	}
}

// TestDefaultImageFallsBackToTheHost: without a registry in reach the host's
// own Python is used instead, but never for an image that was named. A shell user
// reads so once; for a client it is among the fields, and not in the text.
func TestDefaultImageFallsBackToTheHost(t *testing.T) {
	h := firstHost(t)
	// No proxy answers there, whatever network this machine has.
	dead := env{"HTTPS_PROXY": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
	out, errs, code := h.run(t, dead, "exec", "-c", "print(1)")
	if code != 0 || out != "1\n" || !strings.Contains(errs, "host's own Python") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	for flag, noted := range map[string]bool{"-q": false, "-v": true, "--timeout=20": false} {
		if _, errs, code := h.run(t, dead, "exec", flag, "-c", "print(1)"); code != 0 || strings.Contains(errs, "host's own Python") != noted {
			t.Errorf("exec %s again: exit %d, %q", flag, code, errs)
		}
	}
	if _, errs, _ = h.run(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "print(1)"); strings.Contains(errs, "host's own Python") {
		t.Errorf("another state of the host: %q", errs)
	}
	if _, errs, _ = h.run(t, dead, "exec", "-c", "print(1)"); !strings.Contains(errs, "host's own Python") {
		t.Errorf("the note is not printed when it holds again: %q", errs)
	}
	c := h.serve(t, dead)
	r := c.python(t, "print(1)")
	if notes, _ := json.Marshal(r.fields["notes"]); r.isError || !strings.Contains(string(notes), "host's own Python") || strings.Contains(r.text, "host's own Python") {
		t.Errorf("got %s, notes %s", r.text, notes)
	}
	dead["TOOLCELL_IMAGE"] = "python:3.14-slim"
	if out, errs, code = h.run(t, dead, "exec", "-c", "print(1)"); code != 1 || out != "" {
		t.Errorf("a named image fell back: exit %d, %q, %q", code, out, errs)
	}
}

func TestBinaryIsStaticAndSmall(t *testing.T) {
	st, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 38<<20 {
		t.Errorf("the binary has %d bytes, at most 38 MiB are allowed", st.Size())
	}
	if isDynamic(t, bin) {
		t.Error("the binary is not static")
	}
}
