package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExecGivesTheCodeItsArguments(t *testing.T) {
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
		"of a file":           {[]string{file, "--", "1", "--", "2"}, "", "['" + file + "', '1', '--', '2']\n", ""},
		"of standard input":   {[]string{"-", "--", "a"}, show, "['-', 'a']\n", ""},
		"of nothing named":    {[]string{"--", "a"}, show, "['-', 'a']\n", ""},
		"without the dashes":  {[]string{file, "a"}, "", "", "arguments for the code stand after --"},
		"a flag of theirs":    {[]string{file, "--theirs"}, "", "", "-theirs; arguments for the code stand after --"},
		"a file and -c":       {[]string{"-c", show, file}, "", "", "not both"},
		"not text":            {[]string{"-c", show, "--", "\xff"}, "", "", `"\xff" is not text in UTF-8`},
		"a file that is none": {[]string{"-"}, "x = '\xff'", "", "standard input is not text in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.command(t, env{"MCP_BRIDGE_IMAGE": "host"}, append([]string{"exec"}, tt.args...)...)
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
		c := h.command(t, env{"MCP_BRIDGE_IMAGE": "host"}, "exec", "-c",
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
				p := atTerminal(t, h.command(t, env{"MCP_BRIDGE_IMAGE": "host"}, "exec", codeFile(t, sleeper(mark))), 80)
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
	c := h.command(t, env{"MCP_BRIDGE_IMAGE": "host"}, "exec", codeFile(t, flood))
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

	c = h.command(t, env{"MCP_BRIDGE_IMAGE": "host"}, "exec", "-")
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
		c := h.shell(t, env{"MCP_BRIDGE_IMAGE": "host"}, `{ "$@"; echo "exit $?" >&2; } | head -c 1`, args...)
		out, err := c.CombinedOutput()
		if got := string(out[min(1, len(out)):]); err != nil || got != "exit 141\n" {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
}
