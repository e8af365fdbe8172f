package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

//test:mainjob
func TestExecGivesTheCodeItsArguments(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	show := "import sys; print(sys.argv)"
	file := filepath.Join(shared, "argv.py")
	if err := os.WriteFile(file, []byte("\ufeff"+show+"\n"), 0o644); err != nil { // as Windows' editors write it
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args       []string
		stdin      string
		out, wrong string
	}{
		"none":                {[]string{"-c", show}, "", "['-c']\n", ""},
		"of -c":               {[]string{"-c", show, "--", "a", "-c", "--timeout", "", "é x"}, "", "['-c', 'a', '-c', '--timeout', '', 'é x']\n", ""},
		"of a file":           {[]string{file, "--", "1", "--", "2"}, "", "['" + file + "', '--', '1', '--', '2']\n", ""},
		"of a file after --":  {[]string{"--timeout", "20", "--", file, "--", "a"}, "", "['" + file + "', '--', 'a']\n", ""},
		"of standard input":   {[]string{"-", "--", "a"}, show, "['-', '--', 'a']\n", ""},
		"of - after --":       {[]string{"--", "-", "a"}, show, "['-', 'a']\n", ""},
		"of a file, plain":    {[]string{"--timeout", "20", file, "a", "b"}, "", "['" + file + "', 'a', 'b']\n", ""},
		"flags, theirs":       {[]string{file, "--theirs", "--timeout", "-c", "-i", "--", "x"}, "", "['" + file + "', '--theirs', '--timeout', '-c', '-i', '--', 'x']\n", ""},
		"of -c, plain":        {[]string{"-c", show, "a", "--json"}, "", "['-c', 'a', '--json']\n", ""},
		"of -, plain":         {[]string{"-", "a", "-b"}, show, "['-', 'a', '-b']\n", ""},
		"a flag that is none": {[]string{"--theirs", file}, "", "", "--theirs; arguments for the code come after the file"},
		"not text":            {[]string{"-c", show, "--", "\xff"}, "", "", `"\xff" is not text in UTF-8`},
		"no file":             {[]string{"gone.py"}, "", "", "toolcell: there is no such file: \"gone.py\"\n"},
		"no file after --":    {[]string{"--", "a"}, show, "", "toolcell: there is no such file: \"a\"\n"},
		"code, not a file":    {[]string{"print(1)"}, "", "", "there is no file \"print(1)\"; for code on the command line: toolcell exec -c 'print(1)'\n"},
		"a file that is none": {[]string{"-"}, "x = '\xff'", "", "standard input is not text in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, append([]string{"exec"}, tt.args...)...)
			var errs bytes.Buffer
			c.Stdin, c.Stderr = strings.NewReader(tt.stdin), &errs
			out, _ := c.Output()
			code := c.ProcessState.ExitCode()
			if string(out) != tt.out || !strings.Contains(errs.String(), tt.wrong) || (tt.wrong != "") != (code == exitUsage) {
				t.Errorf("exit %d, %q\n%s", code, out, &errs)
			}
		})
	}
}

// TestExecShowsOutputAtOnce: what the code writes is there while it runs,
// however little it is and whatever its bytes.
func TestExecShowsOutputAtOnce(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c",
			"import os, sys, time\nprint('half a l', end='')\nsys.stderr.write('oops')\nos.write(1, bytes(range(256)))\ntime.sleep(100)")
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(slow(patience), func() { _ = c.Process.Kill() }) // or the reads below would wait for ever
		defer stop.Stop()
		want := []byte("half a l")
		for b := range 256 {
			want = append(want, byte(b))
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(stdout, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stdout %q, %v", got, err)
		}
		got = make([]byte, len("oops"))
		if _, err := io.ReadFull(stderr, got); err != nil || string(got) != "oops" {
			t.Errorf("stderr %q, %v", got, err)
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
}

func TestSignalEndsExec(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		for name, tt := range map[string]struct {
			stop func(*person)
			code int
		}{
			"Ctrl-C":       {func(p *person) { p.types("\x03") }, 130},
			"Ctrl-C twice": {func(p *person) { p.types("\x03\x03") }, 130},
			"SIGTERM":      {func(p *person) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 143},
			"SIGHUP":       {func(p *person) { _ = p.cmd.Process.Signal(syscall.SIGHUP) }, 129},
		} {
			t.Run(name, func(t *testing.T) {
				mark := marker()
				p := atTerminal(t, h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", codeFile(t, sleeper(mark))), 80)
				p.sees("so far")
				waitFor(t, "the code to start", func() bool { return alive(mark) })
				tt.stop(p)
				if code := p.leaves(); code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				gone(t, mark)
				if left := h.traces(t, nil); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
				if after := p.screen.String()[p.seen:]; strings.Contains(after, "toolcell:") {
					t.Errorf("says %q", after)
				}
			})
		}
	})
}

// TestSignalEndsExecThatIsHeldUp: neither a reader that reads nothing nor code
// that does not come keeps the program from ending.
func TestSignalEndsExecThatIsHeldUp(t *testing.T) {
	h, mark := firstHost(t), marker()
	flood := "import subprocess\nsubprocess.Popen(['sleep', '" + mark + "'])\nwhile True: print('x' * 10000)"
	c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", codeFile(t, flood))
	r, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the code to start", func() bool { return alive(mark) })
	interrupt(t, c)
	gone(t, mark)

	c = h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when all is written the program is reading it.
	if _, err := in.Write(bytes.Repeat([]byte("#"), 1<<18)); err != nil {
		t.Fatal(err)
	}
	interrupt(t, c)
}

// codeFile puts code into a file that every user can read: on a command line a
// marker in it would be found at once.
func codeFile(t *testing.T, code string) string {
	t.Helper()
	file, err := os.CreateTemp(shared, "code-*.py")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(code)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// interrupt sends what Ctrl-C sends, and wants the end that belongs to it.
func interrupt(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(slow(patience), func() { _ = c.Process.Kill() })
	defer stop.Stop()
	if state, err := c.Process.Wait(); err != nil || state.ExitCode() != 130 {
		t.Errorf("%v: %v, %v", c.Args, state, err)
	}
}

func TestExecEndsQuietlyWithItsReader(t *testing.T) {
	h := firstHost(t)
	for name, args := range map[string][]string{
		"a run":    {"exec", "-c", "while True: print('line')"},
		"a result": {"exec", "--output", "json", "--output-bytes", "1m", "-c", "print('x' * 300000)"},
	} {
		c := h.shell(t, env{"TOOLCELL_IMAGE": "host"}, `{ "$@"; echo "exit $?" >&2; } | head -c 1`, args...)
		out, err := c.CombinedOutput()
		if got := string(out[min(1, len(out)):]); err != nil || got != "exit 141\n" {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}

// TestScriptByItsFirstLine: a file that names toolcell as its interpreter gets its
// arguments.
func TestScriptByItsFirstLine(t *testing.T) {
	h := firstHost(t)
	file := codeFile(t, "#!/usr/bin/env -S "+bin+" exec\nimport sys\nprint(sys.argv, __file__, __name__)\n")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	c := h.shell(t, env{"TOOLCELL_IMAGE": "host"}, file+" a --version")
	c.Stdin = nil
	out, err := c.CombinedOutput()
	if want := "['" + file + "', 'a', '--version'] " + file + " __main__\n"; err != nil || string(out) != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
}

// TestErrorsNameTheScript: also those of its syntax, those that a later block at the
// prompt meets in it, and those of a saved tool that it calls.
func TestErrorsNameTheScript(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = "host"
	h.must(t, e, "exec", "-c", "from mcp import runtime\ndef half(x):\n    return 1 / x\nruntime.save_tool(half)")
	for name, tt := range map[string]struct {
		code, typed string
		want        []string // FILE is the script's
	}{
		"syntax":     {"x = 1\ndef f(:\n", "", []string{`File "FILE", line 2`, "SyntaxError"}},
		"a session":  {"def f(x):\n    return 1 / x\n", "f(0)\n", []string{`File "FILE", line 2, in f`, "ZeroDivisionError"}},
		"saved tool": {"def f():\n    return half(0)\nf()\n", "", []string{`File "FILE", line 2, in f`, `File "<user_tools.half>"`, "ZeroDivisionError"}},
		"a task":     {"import asyncio\nasync def f():\n    return 1 / 0\nawait asyncio.gather(f())\n", "", []string{`File "FILE", line 3, in f`}},
	} {
		file := codeFile(t, tt.code)
		args := []string{"exec", file}
		if tt.typed != "" {
			args = []string{"exec", "-i", file}
		}
		c := h.command(t, e, args...)
		c.Stdin = strings.NewReader(tt.typed)
		out, err := c.CombinedOutput()
		for _, want := range tt.want {
			if want = strings.ReplaceAll(want, "FILE", file); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v, no %q in\n%s", name, err, want, out)
			}
		}
	}
}

func TestTracebackNamesTheScript(t *testing.T) {
	h := firstHost(t)
	file := codeFile(t, "def f():\n    1/0\nf()\n")
	out, _ := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", file).CombinedOutput()
	if want := "File \"" + file + "\", line 2, in f\n    1/0\n"; !strings.Contains(string(out), want) {
		t.Errorf("%s", out)
	}
	module := filepath.Join(filepath.Dir(file), "beside_it.py")
	if err := os.WriteFile(module, []byte("x = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file = codeFile(t, "import beside_it\nprint(beside_it.x)\n")
	out, _ = h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", file).CombinedOutput()
	want := "--mounts " + module + ":/workspace/beside_it.py"
	if !strings.Contains(string(out), want) {
		t.Fatalf("no %q in %s", want, out)
	}
	out, err := h.command(t, env{"TOOLCELL_IMAGE": "host"}, append([]string{"exec"}, append(strings.Fields(want), file)...)...).CombinedOutput()
	if err != nil || string(out) != "1\n" {
		t.Errorf("as advised: %v, %s", err, out)
	}
}

// TestExecGivesTheCodeItsInput: through a pipe, in every way to start a sandbox.
func TestExecGivesTheCodeItsInput(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		for name, tt := range map[string]struct{ code, in, out string }{
			"input()":      {"print(input()); print(input())", "a b\né\n", "a b\né\n"},
			"read()":       {"import sys; print(repr(sys.stdin.read()))", "1\n2", "'1\\n2'\n"},
			"lines":        {"import sys\nfor line in sys.stdin: print(len(line))", "a\nbc\n", "2\n3\n"},
			"a process":    {"import subprocess; _ = subprocess.run(['cat'])", "through\n", "through\n"},
			"large":        {"import sys; print(len(sys.stdin.buffer.read()))", strings.Repeat("x", 3<<20), "3145728\n"},
			"not text":     {"import sys; print(sys.stdin.buffer.read())", "\xff\x00", "b'\\xff\\x00'\n"},
			"empty":        {"import sys; print(repr(sys.stdin.read()))", "", "''\n"},
			"not read":     {"print('done')", strings.Repeat("x", 3<<20), "done\n"},
			"a pipe alone": {"import os, stat; print(stat.S_ISFIFO(os.fstat(0).st_mode))", "x", "True\n"},
		} {
			c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", tt.code)
			c.Stdin = strings.NewReader(tt.in)
			if out, err := c.Output(); string(out) != tt.out {
				t.Errorf("%s: %v, %q", name, err, out)
			}
		}
	})
}

// TestInputIsNotReadAhead: of an endless one no more is taken than pipes hold, and
// code that does not read ends all the same.
func TestInputIsNotReadAhead(t *testing.T) {
	h := firstHost(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "import time; print(input()); time.sleep(.5)")
	c.Stdin = r
	wrote := make(chan int)
	go func() {
		n, all := 0, []byte("first\n"+strings.Repeat("x", 1<<16))
		for {
			part, err := w.Write(all)
			if n += part; err != nil {
				wrote <- n
				return
			}
		}
	}()
	out, err := c.Output()
	r.Close()
	if n := <-wrote; err != nil || string(out) != "first\n" || n > 512<<10 {
		t.Errorf("%v, %q, %d bytes were taken", err, out, n)
	}
}

// TestExecAsksAtTheTerminal: the code gets a line when it wants one, and nothing is
// taken from the shell before.
func TestExecAsksAtTheTerminal(t *testing.T) {
	h := firstHost(t)
	p := atTerminal(t, h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "-c", "print('<' + input('who? ') + '>'); print(input())"), 80)
	p.sees("who? ")
	p.enters("me\n", "<me>")
	p.enters("\x04", "EOFError")
	p.leavesWith(1)
}

func TestLostOutputIsAnError(t *testing.T) {
	h := firstHost(t)
	for _, args := range [][]string{{"-c", "print(1)"}, {"-q", "-c", "42"}, {"--json", "-c", "1"}, {"--output", "toon", "-c", "1"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, append([]string{"exec"}, args...)...)
		var errs bytes.Buffer
		c.Stdout, c.Stderr = full, &errs
		_ = c.Run()
		full.Close()
		if code := c.ProcessState.ExitCode(); code != exitFail || !strings.Contains(errs.String(), "toolcell: write /dev/stdout: no space left on device\n") {
			t.Errorf("%q: exit %d, %s", args, code, &errs)
		}
	}
}

func TestExecPrintsTheResultAsJSON(t *testing.T) {
	h := firstHost(t)
	c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, "exec", "--json", "-c",
		"import sys; print('a'); open('/workspace/out/x.txt', 'w').write('y'); print('<&>', file=sys.stderr); sys.exit(3)")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, _ := c.Output()
	var r struct {
		Status         string
		ExitCode       int
		Stdout, Stderr []string
		Files          []struct{ Name string }
	}
	if err := json.Unmarshal(out, &r); err != nil || r.Status != "error" || r.ExitCode != 3 || c.ProcessState.ExitCode() != 3 ||
		!slices.Equal(r.Stdout, []string{"a"}) || !slices.Equal(r.Stderr, []string{"<&>"}) || len(r.Files) != 1 || !strings.Contains(errs.String(), "kept /") {
		t.Errorf("%v, %s\n%s", err, out, &errs)
	}
	for _, more := range [][]string{{"--output", "json"}, {"-i"}} {
		if code := exitCode(h.command(t, env{"TOOLCELL_IMAGE": "host"}, append(append([]string{"exec", "--json"}, more...), "-c", "1")...)); code != exitUsage {
			t.Errorf("--json %q: exit %d", more, code)
		}
	}
}

func exitCode(c *exec.Cmd) int {
	_ = c.Run()
	return c.ProcessState.ExitCode()
}

// TestQuietExecNamesFiles: but nothing else, not even a log line of a project that
// is not trusted.
func TestQuietExecNamesFiles(t *testing.T) {
	h := firstHost(t)
	dir, policy := t.TempDir(), writeConfig(t, "no policy at all = [")
	_ = os.Chmod(dir, 0o755)
	_ = os.Chmod(filepath.Dir(dir), 0o755)
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers": {"x": {"command": "false"}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_POLICY": policy}
	c := h.command(t, e, "exec", "-c", "1")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "toolcell: note: "+dir+"/.mcp.json is not trusted, so its 1 server is left out; read it, then: toolcell servers trust "+dir+"/.mcp.json\n") ||
		!strings.Contains(string(out), "toolcell: note: nothing may be called until the policy is fixed: ") || strings.Contains(string(out), "level=") {
		t.Errorf("without -q: %v, %s", err, out)
	}
	e["TOOLCELL_LOG_LEVEL"] = "DEBUG"
	c = h.command(t, e, "exec", "-q", "-c", "_ = open('/workspace/out/x.txt', 'w').write('y')")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "toolcell: kept /") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestTheUsersTimeoutWins over the most that a model may ask for.
func TestTheUsersTimeoutWins(t *testing.T) {
	h := firstHost(t)
	c := h.command(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MAX_TIMEOUT": "1s"}, "exec", "--timeout", "10m", "-c", "import time; time.sleep(1.5); print('done')")
	if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "lowered") || !strings.Contains(string(out), "done\n") {
		t.Errorf("%v, %s", err, out)
	}
}
