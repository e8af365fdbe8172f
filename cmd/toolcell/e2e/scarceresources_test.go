package e2e

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFewDescriptors starts servers that may open few files. Those that cannot
// start any sandbox say so; the others make the calls wait for each other.
func TestFewDescriptors(t *testing.T) {
	h := firstHost(t)
	for _, tt := range []struct {
		limit int
		works bool
	}{{16, false}, {48, true}, {128, true}} {
		c := connect(t, h.shell(t, env{"TOOLCELL_IMAGE": "host"}, fmt.Sprintf(`ulimit -n %d; exec "$@"`, tt.limit), "serve"))
		answers := make(chan reply, 5)
		for range cap(answers) {
			go func() { answers <- c.python(t, "import time; time.sleep(0.1); print('works')") }()
		}
		for range cap(answers) {
			r := <-answers
			if tt.works {
				r.want(t, "works")
			} else if r.status() != "sandbox_error" || !strings.Contains(r.text, "too many open files") || strings.Contains(r.text, "namespaces") {
				t.Errorf("%d descriptors: %s", tt.limit, r.text)
			}
		}
	}
}

// TestFewProcesses has a limit that the user's processes reach while calls go
// on. Root has none.
func TestFewProcesses(t *testing.T) {
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	h := all[len(all)-1]
	// The count is of all that the user runs, threads too.
	c := connect(t, h.shell(t, env{"TOOLCELL_IMAGE": "host"}, `ulimit -u 150; exec "$@"`, "serve"))
	answers := make(chan reply, 8)
	for range cap(answers) {
		go func() { answers <- c.python(t, "import time; time.sleep(0.2); print('works')") }()
	}
	for range cap(answers) {
		if r := <-answers; r.isError && !strings.Contains(strings.ToLower(r.text), "resource temporarily unavailable") {
			t.Errorf("neither works nor says why: %s", r.text)
		}
	}
	c.python(t, "print('after')").want(t, "after")
}

// TestOddStart starts servers in ways in which no careful client would.
func TestOddStart(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"odd","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"print('wor' + 'ks')"}}}
`
	huge := env{}
	for i := range 15 {
		huge[fmt.Sprintf("HUGE_%d", i)] = strings.Repeat("x", 100_000)
	}
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		for name, tt := range map[string]struct {
			script string
			env    env
			want   string // in the answers, or on stderr
			code   int
		}{
			"no stderr":          {`exec "$@" 2>&-`, nil, `"works"`, 0},
			"full stderr":        {`exec "$@" 2>/dev/full`, nil, `"works"`, 0},
			"no stdin":           {`exec "$@" <&-`, nil, "", 0},
			"no stdout":          {`exec "$@" >&-`, nil, "", 0},
			"full stdout":        {`exec "$@" >/dev/full`, nil, "writing to the client", exitFail},
			"nothing":            {`exec "$@" <&- >&- 2>&-`, nil, "", 0},
			"more descriptors":   {`exec 5</dev/null 7</ 9</dev/zero; exec "$@"`, nil, `"works"`, 0},
			"huge environment":   {`exec "$@"`, huge, `"works"`, 0},
			"removed folder":     {`/bin/mkdir gone && cd gone && /bin/rmdir ../gone && exec "$@"`, nil, `"works"`, 0},
			"umask 0":            {`umask 0; exec "$@"`, env{"TOOLCELL_STATE_DIR": filepath.Join(h.home, "umask")}, `"works"`, 0},
			"umask 077":          {`umask 077; exec "$@"`, env{"TOOLCELL_STATE_DIR": filepath.Join(h.home, "umask-077")}, `"works"`, 0},
			"no HOME":            {`unset HOME TOOLCELL_STATE_DIR; exec "$@"`, nil, "set it, or TOOLCELL_STATE_DIR", exitUsage},
			"no HOME, a folder":  {`unset HOME; exec "$@"`, nil, `"works"`, 0},
			"no PATH":            {`unset PATH; exec "$@"`, nil, `"works"`, 0},
			"nothing is defined": {`exec env -i "$@"`, env{"PATH": "/usr/bin:/bin"}, "set it, or TOOLCELL_STATE_DIR", exitUsage},
			"ignored signals":    {`trap "" PIPE CHLD INT; exec "$@"`, nil, `"works"`, 0},
		} {
			t.Run(name, func(t *testing.T) {
				e := env{"TOOLCELL_IMAGE": "host"}
				maps.Copy(e, tt.env)
				cmd := h.shell(t, e, tt.script, "serve")
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				var out syncBuffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(in, call) // the server may have ended already
				ended := make(chan struct{})
				go func() { defer close(ended); _ = cmd.Wait() }()
				if tt.want != "" {
					waitFor(t, "an answer", func() bool { return strings.Contains(out.String(), tt.want) })
				}
				in.Close()
				waitFor(t, "the server to end", func() bool {
					select {
					case <-ended:
						return true
					default:
						return false
					}
				})
				if code := cmd.ProcessState.ExitCode(); code != tt.code {
					t.Errorf("exit code %d, want %d: %s", code, tt.code, out.String())
				}
			})
		}
		if left, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for _, dir := range []string{"state", "umask", "umask-077"} {
			info, err := os.Stat(filepath.Join(h.home, dir, "run"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others can look into %s: %v", dir, info.Mode())
			}
		}
	})
}

// fillKeyring becomes a program whose user has all the keys that one may have
// (keyrings(7), maxkeys), in the session keyring that the program inherits.
const fillKeyring = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
assert libc.syscall(keyctl, 1, None) > 0
n = 0
while n < 100000 and libc.syscall(add_key, b"user", b"key %d" % n, b"x", 1, -3) > 0: n += 1
assert ctypes.get_errno() == 122, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
`

// TestFullKeyring: the user's own programs may have taken all keys.
func TestFullKeyring(t *testing.T) {
	if _, err := os.Stat("/proc/key-users"); err != nil {
		t.Skip("this kernel has no keys")
	}
	inEveryWay(t, onOrdinaryHosts, func(t *testing.T, h *host) {
		e := env{"TOOLCELL_IMAGE": "host", "FILL": fillKeyring, "TOOLCELL_START": h.start}
		c := connect(t, h.shell(t, e, `exec /usr/bin/python3 -c "$FILL" "$@"`, "serve"))
		c.wantStart(t, h)
		for range 3 {
			c.python(t, "print('works')").want(t, "works")
		}
	})
}
