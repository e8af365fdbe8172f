package sandboxed

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/spec"
)

// installTarget is where the servers of these tests see what was installed.
const installTarget = spec.OwnDir + "/installed"

// installs has servers need what a shell script installs.
func (l *lab) installs(id, script string) {
	l.prepared.Install = &Install{ID: id, Of: "a package", Args: []string{"/bin/sh", "-c", script + "\nchmod 755 ."}, Target: installTarget}
}

// fails launches a server which cannot be installed, and returns why.
func (l *lab) fails(t *testing.T, section string) string {
	t.Helper()
	if _, err := l.Launch(t.Context(), shell("echo started"), boxOf(t, section)); err != nil {
		return err.Error()
	}
	t.Error("it has started")
	return ""
}

// TestInstallScriptsRunOnce, and the server sees what they made: it can run that, and not change it.
func TestInstallScriptsRunOnce(t *testing.T) {
	l := newLab(t)
	l.installs("1", `cat /proc/sys/kernel/random/uuid > id; printf '#!/bin/sh\necho ran' > tool; chmod 755 tool; ln -s /etc/shadow link`)
	s := shell("cd " + installTarget + ` && cat id && ./tool; for change in "touch new" "rm tool" "chmod 777 ." "mount -o remount,rw ."; do $change 2>/dev/null && echo it could $change; done; cat link`)
	out, how := l.ends(t, s, boxOf(t, "install = []"))
	id, rest, _ := strings.Cut(out, "\n")
	if len(id) != 36 || rest != "ran\n" || how == "exit status 0" {
		t.Errorf("%s\n%s", how, out)
	}
	if again, _ := l.ends(t, s, boxOf(t, "install = []")); again != out {
		t.Errorf("the second server sees\n%s\nthe first saw\n%s", again, out)
	}
	l.installs("2", "echo another > id")
	if other, _ := l.ends(t, s, boxOf(t, "install = []")); !strings.HasPrefix(other, "another\n") {
		t.Errorf("for another lock it sees %q", other)
	}
}

// TestInstallScriptsKnowNothingOfTheServer: no secret, no variable and no folder of its entry.
func TestInstallScriptsKnowNothingOfTheServer(t *testing.T) {
	l := newLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLAIN", "s3cr3t")
	l.installs("1", `env > environment; ls -d /notes > seen 2>/dev/null; ls -A > before; touch /etc/x /usr/x /run/toolcell/x 2>/dev/null && echo outside >> seen; true`)
	s := shell("cd " + installTarget + "; cat environment before seen; touch ~/mine")
	s.Env = map[string]string{"OF_ENTRY": "s3cr3t", "TOKEN": "s3cr3t"}
	box := boxOf(t, "install = []\nnetwork = ['api.example.com']\nmounts = [{ source = '"+dir+"', target = '/notes' }]\nsecrets = ['PLAIN', { env = 'TOKEN', host = 'api.example.com' }]")
	out, how := l.ends(t, s, box)
	for _, no := range []string{"s3cr3t", "OF_ENTRY", "TOKEN", "PLAIN", "/notes\n", "outside", "\nmine"} {
		if strings.Contains(out, no) {
			t.Errorf("they find %q", no)
		}
	}
	if !strings.Contains(out, "HOME=/home/server\n") || how != "exit status 0" || t.Failed() {
		t.Errorf("%s\n%s", how, out)
	}
}

// TestInstallScriptsReachTheirHostsAlone: those of the server are not theirs.
func TestInstallScriptsReachTheirHostsAlone(t *testing.T) {
	l := newLab(t)
	l.installs("1", `exec python3 -c 'import urllib.request; urllib.request.urlopen("https://api.example.com/")'`)
	for section, want := range map[string]string{
		"install = []\nnetwork = ['api.example.com']":     "refused api.example.com:443; to allow it, add it to [servers.x] install of policy.toml",
		"install = ['github.com']":                        "refused api.example.com:443; to allow it, add it to [servers.x] install of policy.toml",
		"network = ['api.example.com']\nmemory = '500MB'": "the policy does not let them run",
	} {
		if got := l.fails(t, section); !strings.Contains(got, want) || !strings.Contains(got, "running the install scripts of a package: ") {
			t.Errorf("%s: %s", section, got)
		}
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a binary\n") }))
	defer host.Close()
	l.installs("2", `python3 -c 'import urllib.request; print(urllib.request.urlopen("`+host.URL+`").read().decode(), end="")' > got`)
	fetch := shell("cat " + installTarget + `/got; python3 -c 'import urllib.request; urllib.request.urlopen("` + host.URL + `")' 2>/dev/null && echo the server reaches it, too`)
	if out, how := l.ends(t, fetch, boxOf(t, `install = { allow = ["`+host.URL+`"], private = ["127.0.0.1"] }`)); out != "a binary\n" {
		t.Errorf("%s\n%s", how, out)
	}
}

// TestFailedInstallScriptsAreTriedAgain, from the beginning, and the error has their last lines.
func TestFailedInstallScriptsAreTriedAgain(t *testing.T) {
	l := newLab(t)
	l.installs("1", `echo left > left; echo no compiler >&2; printf '\033[2Jgyp ERR!\n' >&2; exit 3`)
	got := l.fails(t, "install = []")
	if !strings.HasSuffix(got, "exit status 3; no compiler; gyp ERR!") {
		t.Errorf("%q", got)
	}
	l.installs("1", `echo left > left; exec python3 -c 'x = bytearray(400 << 20)
for i in range(0, len(x), 4096): x[i] = 1'`)
	if got := l.fails(t, "install = []\nmemory = '100MiB'"); !strings.Contains(got, "used more than its 100 MiB of memory and was ended") {
		t.Errorf("%q", got)
	}
	l.installs("1", "ls -A > there; echo done >> there")
	if out, how := l.ends(t, shell("cat "+installTarget+"/there"), boxOf(t, "install = []")); out != "there\ndone\n" {
		t.Errorf("%s\n%s", how, out)
	}
}

// TestInstallScriptsEndWithTheStart, whose caller gives up.
func TestInstallScriptsEndWithTheStart(t *testing.T) {
	l := newLab(t)
	l.installs("1", "chmod 755 .; echo half > half; while :; do sleep 1; done")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("given up")
	failed := make(chan error, 1)
	go func() {
		_, err := l.Launch(ctx, shell(""), boxOf(t, "install = []"))
		failed <- err
	}()
	homes := l.homes
	for { // until it is in the middle
		if there, err := filepath.Glob(homes + "/*+*/home/half"); err != nil || len(there) > 0 {
			break
		}
		select {
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel(why)
	if err := <-failed; !errors.Is(err, why) {
		t.Error(err)
	}
	if left, err := filepath.Glob(homes + "/*+*"); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// TestServersStartedAtOnceInstallOnce, and see the same.
func TestServersStartedAtOnceInstallOnce(t *testing.T) {
	l := newLab(t)
	l.installs("1", "cat /proc/sys/kernel/random/uuid > id")
	var all sync.WaitGroup
	outs := make([]string, 3)
	for i := range outs {
		all.Go(func() { outs[i], _ = l.ends(t, shell("cat "+installTarget+"/id"), boxOf(t, "install = []")) })
	}
	all.Wait()
	for _, out := range outs {
		if out != outs[0] || len(out) != 37 {
			t.Errorf("they see %q", outs)
		}
	}
	if entries, err := os.ReadDir(l.homes); err != nil || len(entries) != 3 { // with HOME and the lock
		t.Errorf("there are %v, %v", entries, err)
	}
}

// TestInstallScriptsAreBounded in time, and in what they write, however they write it.
func TestInstallScriptsAreBounded(t *testing.T) {
	l := newLab(t)
	l.homeEvery, l.maxInstalled, l.maxInstallTime = 10*time.Millisecond, 1<<20, 10*time.Minute
	const tooMuch = "running the install scripts of a package: more than 1 MiB was written ("
	for name, script := range map[string]string{
		"one file":     "exec cat /dev/zero > x",
		"many files":   "i=0; while :; do i=$((i+1)); echo x > $i; done",
		"deep folders": "exec python3 -c 'import os\nwhile True: os.mkdir(\"d\"); os.chdir(\"d\")'",
	} {
		l.installs(name, script)
		if got := l.fails(t, "install = []"); !strings.HasPrefix(got, "it cannot run in its sandbox: "+tooMuch) {
			t.Errorf("%s: %s", name, got)
		}
	}
	l.homeEvery = time.Hour // none is watched while it writes
	l.installs("quickly", "head -c 2000000 /dev/zero > x")
	if got := l.fails(t, "install = []"); !strings.Contains(got, tooMuch) {
		t.Errorf("between two looks: %s", got)
	}
	l.maxInstallTime = 300 * time.Millisecond
	l.installs("forever", "trap '' TERM INT HUP; while :; do sleep 1; done")
	if got := l.fails(t, "install = []"); !strings.HasSuffix(got, "running the install scripts of a package: they took longer than 300ms") {
		t.Errorf("without end: %s", got)
	}
	if left, err := filepath.Glob(l.homes + "/*+*"); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// TestInstallScriptsLeaveNoProcess: a daemon ends with them, also one that keeps their output open.
func TestInstallScriptsLeaveNoProcess(t *testing.T) {
	l := newLab(t)
	l.installs("1", `python3 -c 'import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open("begun", "w").close()
while True: open("beat", "w").write(str(time.monotonic_ns())); time.sleep(0.001)'
until test -s beat; do sleep 0.01; done`)
	const same = "cd " + installTarget + `; a=$(cat beat); sleep 0.2; test -e begun && test "$a" = "$(cat beat)" && echo at rest`
	if out, how := l.ends(t, shell(same), boxOf(t, "install = []")); out != "at rest\n" {
		t.Errorf("%s\n%s", how, out)
	}
}

// TestInstallScriptsThatFlood take no memory with what they write, and have an error of a few lines.
func TestInstallScriptsThatFlood(t *testing.T) {
	l := newLab(t)
	l.installs("one line", "head -c 200000000 /dev/zero | tr '\\0' x | tee /dev/stdout >&2; exit 9")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := l.fails(t, "install = []")
	runtime.ReadMemStats(&after)
	if !strings.Contains(got, "exit status 9; xxxx") || len(got) > 1000 {
		t.Errorf("%d bytes: %.2000s", len(got), got)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 50<<20 {
		t.Errorf("reading it took %d bytes", took)
	}
	l.installs("many lines", "yes flood | head -c 600000 >&2; exit 9")
	if got := l.fails(t, "install = []"); !strings.HasSuffix(got, "exit status 9"+strings.Repeat("; flood", maxTailLines)) {
		t.Errorf("many lines: %.2000s", got)
	}
}
