package sandboxed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/ocitest"
	"github.com/toolcell/toolcell/oci/spec"
)

// A lab launches shells as servers.
type lab struct {
	*Launcher
	prepared Prepared
	fail     error    // of Prepare
	written  []string // folders that sandboxes may write to
	homes    string   // the folder of their homes
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ocitest.NeedNamespaces(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := oci.Open(filepath.Join(dir, "run"), 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{prepared: Prepared{Root: ocitest.HostRoot(t), Env: []string{"FROM_IMAGE=yes", "PATH=/usr/bin:/bin"}}, homes: filepath.Join(dir, "homes")}
	l.Launcher = New(Options{
		Sandboxes: runtime, Dir: runtime.StateDir, Log: slog.New(slog.DiscardHandler),
		Written: func() []string { return l.written },
		Homes: func(mounts []spec.Mount) (*homes.Store, error) {
			h, err := runtime.HostOfServers(mounts)
			return homes.Open(l.homes, h), err
		},
		Prepare: func(_ context.Context, s config.Server, _ *policy.Sandbox) (*Prepared, error) {
			p := l.prepared
			p.Args = append([]string{s.Command}, s.Args...)
			return &p, l.fail
		},
	})
	t.Cleanup(func() { // which only this can where the files belong to other IDs
		store, err := l.o.Homes(nil)
		if err == nil {
			err = store.RemoveAll(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return l
}

// boxOf returns what a policy says of the server x.
func boxOf(t *testing.T, section string) *policy.Sandbox {
	t.Helper()
	p := policy.Parse([]byte("[servers.x]\nsandbox = \"on\"\n"+section), "policy.toml")
	box, err := p.NewEnforcer().Sandbox(policy.Server{Name: "x", Alias: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func shell(script string) config.Server {
	return config.Server{Name: "x", Alias: "x", Transport: config.Stdio, Command: "/bin/sh", Args: []string{"-c", script}, Source: "servers.json"}
}

// launch launches a server, which ends with the test.
func (l *lab) launch(t *testing.T, s config.Server, box *policy.Sandbox) *stdio.Launched {
	t.Helper()
	started, err := l.Launch(t.Context(), s, box)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closePipes(started)
		started.Child.Signal(unix.SIGKILL)
	})
	return started
}

// ends returns what a server writes until its end, and how it ended.
func (l *lab) ends(t *testing.T, s config.Server, box *policy.Sandbox) (text, how string) {
	t.Helper()
	started := l.launch(t, s, box)
	out, err := io.ReadAll(started.Stdout)
	if err != nil {
		t.Error(err)
	}
	started.Child.Await()
	started.Child.Signal(unix.SIGKILL)
	return string(out), started.Child.Reap()
}

// TestServerTalksOverItsPipes, and ends as a process does.
func TestServerTalksOverItsPipes(t *testing.T) {
	l := newLab(t)
	started := l.launch(t, shell("read line; echo got $line; echo said >&2; exit 3"), boxOf(t, ""))
	if _, err := io.WriteString(started.Stdin, "hello\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(started.Stdout).ReadString('\n')
	if line != "got hello\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	started.Child.Await()
	started.Child.Signal(unix.SIGKILL)
	if how := started.Child.Reap(); how != "exit status 3" {
		t.Error(how)
	}
	if said, err := io.ReadAll(started.Stderr); string(said) != "said\n" || err != nil {
		t.Errorf("%q, %v", said, err)
	}
}

// TestServerEnds: when it is asked to, and in any case when it is killed, with all that it has started.
func TestServerEnds(t *testing.T) {
	l := newLab(t)
	for name, tt := range map[string]struct {
		script, how string
		sig         unix.Signal
	}{
		"asked":         {"trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done", "exit status 7", unix.SIGTERM},
		"killed":        {"trap '' TERM; (while :; do sleep 1; done) & echo ready; while :; do sleep 1; done", "signal: killed", unix.SIGKILL},
		"by its signal": {"echo ready; kill -9 $$", "exit status 137 (killed)", 0},
	} {
		started := l.launch(t, shell(tt.script), boxOf(t, ""))
		if line, err := bufio.NewReader(started.Stdout).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%s: %q, %v", name, line, err)
		}
		if tt.sig != 0 {
			started.Child.Signal(tt.sig)
		}
		started.Child.Await()
		started.Child.Signal(unix.SIGKILL)
		if how := started.Child.Reap(); how != tt.how {
			t.Errorf("%s: %s", name, how)
		}
	}
}

// TestServerHasTheEnvironmentOfItsEntry, and nothing of this process's.
func TestServerHasTheEnvironmentOfItsEntry(t *testing.T) {
	l := newLab(t)
	t.Setenv("OF_THE_HOST", "no")
	t.Setenv("PLAIN", "a value")
	s := shell("env | sort")
	s.Env = map[string]string{"OF_ENTRY": "yes", "HOME": "/home/me", "PATH": "/opt/mine", "TOKEN": "s3cr3t-value"}
	box := boxOf(t, "network = [\"api.example.com\"]\nsecrets = [\"PLAIN\", { env = \"TOKEN\", host = \"api.example.com\" }]")
	l.prepared.Path = []string{"/run/toolcell/node/bin"}
	out, how := l.ends(t, s, box)
	for _, want := range []string{"FROM_IMAGE=yes", "OF_ENTRY=yes", "PLAIN=a value", "HOME=/home/server", "PATH=/run/toolcell/node/bin:/usr/bin:/bin", "XDG_CONFIG_HOME=/home/server/.config", "HTTPS_PROXY=http://127.0.0.1:", "TOKEN=tc_"} {
		if !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("it lacks %s", want)
		}
	}
	for _, no := range []string{"OF_THE_HOST", "s3cr3t", "_TOOLCELL"} {
		if strings.Contains(out, no) {
			t.Errorf("it has %s", no)
		}
	}
	if how != "exit status 0" || t.Failed() {
		t.Logf("%s\n%s", how, out)
	}
}

// TestFoldersOfHomeMayBeInMounts: so a server that reads ~/.config sees what its section shows.
func TestFoldersOfHomeMayBeInMounts(t *testing.T) {
	l := newLab(t)
	s := shell("env")
	s.Env = map[string]string{"HOME": "/settings", "XDG_CONFIG_HOME": "/settings/mine", "XDG_DATA_HOME": "/settings/../etc", "XDG_CACHE_HOME": "/settingsx"}
	out, _ := l.ends(t, s, boxOf(t, fmt.Sprintf("mounts = [{ source = %q, target = '/settings' }]", t.TempDir())))
	for _, want := range []string{"HOME=/home/server", "XDG_CONFIG_HOME=/settings/mine", "XDG_DATA_HOME=/home/server/.local/share", "XDG_CACHE_HOME=/home/server/.cache"} {
		if !strings.Contains("\n"+out, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// TestRefusedHostsAreNamed: the error of a call can say what to add.
func TestRefusedHostsAreNamed(t *testing.T) {
	l := newLab(t)
	began := time.Now()
	started := l.launch(t, shell(`exec python3 -c 'import urllib.request
try: urllib.request.urlopen("https://other.example.com/")
except Exception as e: print(e, flush=True)
input()'`), boxOf(t, `network = ["api.example.com"]`))
	line, err := bufio.NewReader(started.Stdout).ReadString('\n')
	if !strings.Contains(line, "403") {
		t.Errorf("%q, %v", line, err)
	}
	if why := started.Explain(began); !strings.Contains(why, "refused other.example.com:443; to allow it, add it to [servers.x] network of policy.toml") {
		t.Errorf("%q", why)
	}
	roots, err := l.o.Dir()
	if written, _ := filepath.Glob(filepath.Join(roots, "roots-*")); err != nil || len(written) != 1 {
		t.Errorf("the certificates are in %q, %v", written, err)
	}
	started.Child.Signal(unix.SIGKILL)
	started.Child.Await()
	started.Child.Reap()
	if left, err := filepath.Glob(filepath.Join(roots, "roots-*")); len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestServerOverItsLimits ends, and its end says which section gives it more.
func TestServerOverItsLimits(t *testing.T) {
	l := newLab(t)
	_, how := l.ends(t, shell(`exec python3 -c 'x = bytearray(400 << 20)
for i in range(0, len(x), 4096): x[i] = 1
import time; time.sleep(20)'`), boxOf(t, `memory = "100MiB"`))
	if how != "used more than its 100 MiB of memory and was ended; memory in its section of the policy gives it more" {
		t.Error(how)
	}
}

// TestWhatIsMissingIsAnError, which the user can cure; nothing starts with less.
func TestWhatIsMissingIsAnError(t *testing.T) {
	l := newLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inDir := shell("pwd; ls")
	inDir.Dir = dir
	for name, tt := range map[string]struct {
		server  config.Server
		section string
		fail    error
		want    string
	}{
		"a mount":                  {shell(""), `mounts = [{ source = "/no/such/folder" }]`, nil, "/no/such/folder"},
		"a secret":                 {shell(""), `secrets = ["NO_SUCH_VARIABLE"]`, nil, "needs a value for NO_SUCH_VARIABLE"},
		"its directory":            {inDir, "", nil, "add it to mounts"},
		"what its command needs":   {shell(""), "", errors.New("no index can be reached"), "no index can be reached"},
		"its directory at all":     {config.Server{Name: "x", Dir: "/no/such"}, "", nil, "is not there"},
		"the program in the image": {config.Server{Name: "x", Command: "/no/such/program"}, "", nil, ""},
	} {
		l.fail = tt.fail
		started, err := l.Launch(t.Context(), tt.server, boxOf(t, tt.section))
		if tt.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			started.Child.Await()
			if how := started.Child.Reap(); how != "exit status 127" {
				t.Errorf("%s: %s", name, how)
			}
			continue
		}
		if wrong, ok := errors.AsType[*stdio.CommandError](err); !ok || !strings.Contains(wrong.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.fail = nil
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	inDir.Dir = filepath.Join(dir, "below")
	out, _ := l.ends(t, inDir, boxOf(t, `mounts = [{ source = "`+dir+`", target = "/notes" }]`))
	if out != "/notes/below\n" {
		t.Errorf("it starts in %q", out)
	}
}

// TestStartThatIsGivenUp: what would come of it is not wanted any more.
func TestStartThatIsGivenUp(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("given up")
	cancel(why)
	if _, err := l.Launch(ctx, shell("sleep 100"), boxOf(t, "")); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestNamesAreFoundHoweverTheyAreAsked: servers may list addresses, and glibc then wants one that is not
// 127.0.0.1 before it looks for IPv4.
func TestNamesAreFoundHoweverTheyAreAsked(t *testing.T) {
	l := newLab(t)
	out, _ := l.ends(t, shell(`exec python3 -c 'import socket
for family in 0, socket.AF_INET:
    for flags in 0, socket.AI_ADDRCONFIG: print(socket.getaddrinfo("api.example.com", 443, family, socket.SOCK_STREAM, 0, flags)[0][4][0])' 2>&1`),
		boxOf(t, `network = ["api.example.com"]`))
	if lines := strings.Fields(out); len(lines) != 4 || !strings.HasPrefix(lines[0], "127.") || strings.Count(out, lines[0]) != 4 {
		t.Errorf("%q", out)
	}
}
