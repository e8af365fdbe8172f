package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
	"golang.org/x/sys/unix"
)

// atPrompt starts exec -i in a terminal, and waits for its prompt.
func atPrompt(t *testing.T, h *host, e env, args ...string) *person {
	t.Helper()
	if e == nil {
		e = env{}
	}
	e["TOOLCELL_IMAGE"], e["NO_COLOR"] = "host", "1"
	if e["TERM"] == "" {
		e["TERM"] = "xterm"
	}
	p := atTerminal(t, h.command(t, e, append([]string{"exec", "-i"}, args...)...), 80)
	p.sees(">>> ")
	return p
}

func TestPromptIsASession(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		p := atPrompt(t, h, nil)
		p.enters("x = 40\r", ">>> ")
		p.enters("x + 2\r", "\n42\r\n")
		p.enters("def f(n):\r", "... ")
		p.enters("\treturn [n] * 3\r", "... ") // Tab indents
		p.enters("\r", ">>> ")
		p.enters("f('a')\r", "\n['a', 'a', 'a']\r\n")
		p.enters("1/0\r", "ZeroDivisionError")
		p.enters("print('no end of line', end='')\r", "\nno end of line\r\n")
		p.enters("x +\x7f+ 1\x01(\x05)\r", "\n41\r\n") // backspace, Ctrl-A, Ctrl-E
		p.sees(">>> ")
		p.types("\x04")
		p.leavesWith(0)
	})
}

func TestPromptEndsWithTheCode(t *testing.T) {
	h := firstHost(t)
	for code, want := range map[string]int{"exit()": 0, "exit(7)": 7, "quit(3)": 3} {
		p := atPrompt(t, h, nil)
		p.types(code + "\r")
		if got := p.leaves(); got != want {
			t.Errorf("%s: exit code %d", code, got)
		}
	}
}

// TestCtrlCAtThePrompt: it abandons a block, interrupts a run, whose session goes on,
// and the prompt continues.
func TestCtrlCAtThePrompt(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		p, mark := atPrompt(t, h, nil), marker()
		p.enters("def f(:\r\x03", "KeyboardInterrupt")
		p.sees(">>> ")
		p.enters("x = 41\r", ">>> ")
		p.enters("import subprocess; print('be', end='gun'); subprocess.run(['sleep', '"+mark+"'])\r", "begun")
		waitFor(t, "the code to start", func() bool { return alive(mark) })
		p.enters("\x03", "KeyboardInterrupt")
		p.sees(">>> ")
		gone(t, mark)
		p.enters("import asyncio; print('be', end='gun'); await asyncio.sleep(1000)\r", "begun")
		p.enters("\x03", "KeyboardInterrupt")
		p.sees(">>> ")
		p.enters("x + 1\r", "\n42\r\n")
		p.sees(">>> ")
		p.types("\x03\x04")
		p.leavesWith(0)
		if left := h.traces(t, nil); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// TestCtrlCTwiceEndsTheSession of code that does not heed it.
func TestCtrlCTwiceEndsTheSession(t *testing.T) {
	h := firstHost(t)
	p := atPrompt(t, h, nil)
	p.enters("x = 1; import signal, time; _ = signal.signal(signal.SIGINT, signal.SIG_IGN)\r", ">>> ")
	p.enters("print('be', end='gun'); time.sleep(1000)\r", "begun")
	p.enters("\x03", "Ctrl-C again ends it")
	p.enters("\x03", "toolcell: cancelled: by Ctrl-C")
	p.sees("the session was ended: its variables and files are gone")
	p.sees(">>> ")
	p.enters("'x' in globals()\r", "\nFalse\r\n")
	if strings.Contains(p.screen.String(), "was ended: a run was cancelled") {
		t.Error("the end of the session is said twice")
	}
	p.types("\x04")
	p.leaves()
}

// TestPromptAnswersTheCode: the next line goes to the code that wants it, is not run
// and not remembered, and the time until it comes is not the run's.
func TestPromptAnswersTheCode(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	p := atPrompt(t, h, e, "--timeout", "2")
	p.enters("name = input('Who? ')\r", "Who? ")
	time.Sleep(3 * time.Second) // longer than the run's time
	p.enters("1/0 Bob\r", ">>> ")
	p.enters("'<' + name + '>'\r", "\n'<1/0 Bob>'\r\n")
	p.types("import sys; [len(line) for line in sys.stdin]\r")
	p.types("abc\r")
	p.enters("\x04", "\n[4]\r\n")
	p.enters("input('again? ')\r", "again? ")
	p.enters("\x03", "KeyboardInterrupt")
	p.sees(">>> ")
	p.enters("len(name)\r", "\n7\r\n")
	p.types("\x04")
	p.leaves()
	history, err := os.ReadFile(filepath.Join(e["TOOLCELL_STATE_DIR"], "state", "history"))
	if err != nil || strings.Contains(string(history), "\n1/0 Bob\n") {
		t.Errorf("%v, %s", err, history)
	}
}

// TestCtrlCBehindALine interrupts its code, whether that has begun or not.
func TestCtrlCBehindALine(t *testing.T) {
	p := atPrompt(t, firstHost(t), nil)
	p.enters("import time\r", ">>> ")
	for range 5 {
		p.enters("input('again? ')\r", "again? ") // which the line has, too
		p.enters("\x03", "KeyboardInterrupt")
		p.sees(">>> ")
	}
	p.enters("time.time() > 1\r", "\nTrue\r\n")
	p.types("\x04")
	p.leaves()
}

// TestPromptComesBackFromInput: a Ctrl-C that comes before the line can be edited is a
// signal, which ends the code beside the line that it waits for. Another comes as the code
// begins to wait, whether the line can be edited already or not.
func TestPromptComesBackFromInput(t *testing.T) {
	h := firstHost(t)
	for _, term := range []string{"xterm", "dumb"} {
		for _, half := range []bool{true, false} {
			p := atPrompt(t, h, env{"TERM": term})
			for range 3 {
				p.enters("input('Wh' + 'o? ')\r", "Who? ")
				if !half {
					p.types("\x03")
				} else if p.enters("half", "half"); p.cmd.Process.Signal(syscall.SIGINT) != nil {
					t.Fatal("it has ended")
				}
				p.sees("KeyboardInterrupt")
				p.sees(">>> ")
				if half && term == "dumb" { // the terminal itself keeps the line until it ends
					p.types("\x15")
				}
				p.enters("20 + 1\r", "\n21\r\n")
				p.sees(">>> ")
			}
			p.types("\x04")
			p.leavesWith(0)
		}
	}
}

func TestPromptCompletesNames(t *testing.T) {
	p := atPrompt(t, firstHost(t), nil)
	p.enters("isinst\t(4, int)\r", "\nTrue\r\n") // before any code has run
	p.enters("my_variable = 4\r", ">>> ")
	p.enters("my_v\t + 2\r", "\n6\r\n")
	p.enters("(my_variable.bit_l\t()) * 7\r", "\n21\r\n")
	p.enters("class C:\r    @property\r    def ran(self): print('it r', end='an')\r\r", ">>> ")
	p.enters("c = C()\r", ">>> ")
	p.types("c.ran.\t\t\x15'on'\r")
	if before := p.sees("\n'on'\r\n"); strings.Contains(before, "it ran") {
		t.Error("Tab ran a property")
	}
	p.enters("import os\r", ">>> ")
	p.enters("os.get\t\t", "getpid") // several: the second Tab lists them
	p.enters("\x15my_variable\r", "\n4\r\n")
	p.types("\x04")
	p.leaves()
}

// TestPromptTakesPastes: with the empty lines and tabs in them.
func TestPromptTakesPastes(t *testing.T) {
	p := atPrompt(t, firstHost(t), nil)
	p.sees("")
	p.enters("\x1b[200~def f(n):\r\ta = n\r\r\tif a:\r\r\t\treturn a * 2\r\r\treturn 'none'\r\x1b[201~\r", ">>> ")
	p.enters("f(21)\r", "\n42\r\n")
	p.enters("\x1b[200~class C:\n    x = 1\n\n    def g(self):\n        return self.x + 6\n\nC().g()\n\x1b[201~", "\n7\r\n")
	p.enters("\x1b[200~f(\x03\x040)\x1b[201~\r", "\n'none'\r\n") // keys in a paste are none
	p.types("\x04")
	p.leaves()
}

// TestSignalEndsThePrompt: whether it waits for a line or for code, and the
// terminal is as it was.
func TestSignalEndsThePrompt(t *testing.T) {
	h := firstHost(t)
	for name, code := range map[string]string{"at a line": "", "at code": "print('be', end='gun'); import time; time.sleep(100)\r"} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := terminaltest.Open(t, 80)
			defer theirs.Close()
			before, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			c := h.command(t, env{"TOOLCELL_IMAGE": "host", "TERM": "xterm"}, "exec", "-i")
			p := startAt(t, c, ours, theirs)
			p.sees(">>> ")
			p.types(code)
			if code != "" {
				p.sees("begun")
			}
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.await("the command", p.ended) // we have its terminal, too
			if code := p.cmd.ProcessState.ExitCode(); code != 143 {
				t.Errorf("exit code %d", code)
			}
			if after, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS); err != nil || *after != *before {
				t.Errorf("the terminal was %+v and is %+v, %v", before, after, err)
			}
		})
	}
}

func TestPromptRemembersLines(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	file := filepath.Join(e["TOOLCELL_STATE_DIR"], "state", "history")
	p := atPrompt(t, h, e)
	p.enters("first = 'remembered'\r", ">>> ")
	p.enters("first\r", "\n'remembered'")
	_ = p.cmd.Process.Kill() // it is kept when it is typed
	<-p.ended
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	p = atPrompt(t, h, e)
	p.enters("\x1b[A\x1b[A\r", ">>> ")       // up, up
	p.enters("\x10\x10\r", "\n'remembered'") // Ctrl-P
	p.enters("\x12first =\r", ">>> ")        // Ctrl-R
	p.types("\x04")
	p.leaves()

	var many strings.Builder
	for i := range 1000 + 100 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	if err := os.WriteFile(file, []byte(many.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	p = atPrompt(t, h, e)
	p.enters("2\r", "\n2")
	body, _ := os.ReadFile(file)
	info, _ = os.Stat(file)
	if lines := strings.Split(strings.TrimSpace(string(body)), "\n"); len(lines) != 1000+1 || lines[0] != "line 100" || info.Mode() != 0o600 {
		t.Errorf("%d lines, the first %q, mode %v", len(lines), lines[0], info.Mode())
	}
}

// TestPromptOnADumbTerminal shows its marks, and does without an editor.
func TestPromptOnADumbTerminal(t *testing.T) {
	p := atPrompt(t, firstHost(t), env{"TERM": "dumb"})
	p.enters("if 1:\n", "... ")
	p.enters("\x03", "KeyboardInterrupt")
	p.sees(">>> ")
	p.enters("6 * 7\n", "\n42\r\n")
	p.types("\x04")
	p.leavesWith(0)
}

func TestPromptWithoutATerminal(t *testing.T) {
	// Not parallel: its runs have a few seconds, which may be over before Python starts.
	h := firstHost(t)
	for name, tt := range map[string]struct {
		args          []string
		in, out, errs string // errs: a part
		code          int
	}{
		"blocks":           {nil, "x = 40\nfor i in (1,\n  2):\n    x += 1\n\nx\n", "42\n", "", 0},
		"no last newline":  {nil, "print('a')\nif 1:\n  print('b')", "a\nb\n", "", 0},
		"nothing":          {nil, "", "", "", 0},
		"an error goes on": {nil, "1/0\nprint('on')\n", "on\n", "ZeroDivisionError", 0},
		"the last fails":   {nil, "print('on')\n1/0\n", "on\n", "ZeroDivisionError", 1},
		"sys.exit":         {nil, "import sys\nsys.exit(9)\n", "", "", 9},
		"exit":             {nil, "exit(5)\nprint('not')\n", "", "", 5},
		"await":            {nil, "import asyncio\nawait asyncio.sleep(0, 'slept')\n", "'slept'\n", "", 0},
		"a crash":          {nil, "x = 1\nimport os; os.kill(os.getpid(), 9)\nprint('x' in globals())\n", "False\n", "the session was ended", 0},
		"too long":         {[]string{"--timeout", "1"}, "while True: pass\n\nprint('on')\n", "on\n", "the session was ended", 0},
		"code first":       {[]string{"-c", "import sys; x = len(sys.argv)", "a", "b"}, "x\nsys.argv\n", "3\n['-c', 'a', 'b']\n", "", 0},
		"input":            {nil, "x = input()\nhello 1/0\nx\n", "'hello 1/0'\n", "", 0},
		"input at the end": {nil, "input()\n", "", "EOFError", 1},
		"not text":         {nil, "print(1)\n\xff\n", "1\n", "not text in UTF-8", exitUsage},
		"input twice":      {[]string{"-"}, "1\n", "", "with -i standard input is the prompt's", exitUsage},
		"a form":           {[]string{"--output", "json"}, "1\n", "", "not both", exitUsage},
		"no such server":   {[]string{"--server", "zzz"}, "1\n", "", "zzz", exitUsage},
		"no such image":    {[]string{"--image", "oci:/no/such"}, "1\nprint(2)\n", "", "/no/such", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.command(t, env{"TOOLCELL_IMAGE": "host"}, append([]string{"exec", "-i"}, tt.args...)...)
			var out, errs strings.Builder
			c.Stdin, c.Stdout, c.Stderr = strings.NewReader(tt.in), &out, &errs
			_ = c.Run() // the exit code is looked at
			if code := c.ProcessState.ExitCode(); code != tt.code || out.String() != tt.out || !strings.Contains(errs.String(), tt.errs) {
				t.Errorf("exit %d, %q\n%s", code, &out, &errs)
			}
		})
	}
}
