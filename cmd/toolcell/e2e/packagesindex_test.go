package e2e

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An index is a package index on this host, with one wheel of each of its projects. It
// does not say when they were uploaded.
type index struct {
	*httptest.Server
	mu     sync.Mutex
	wheels map[string][]byte // by project
	hashes map[string]string // that the pages say, if they are others
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func startIndex(t *testing.T) *index {
	x := &index{wheels: map[string][]byte{}, hashes: map[string]string{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.answer != nil && x.answer(w, r) {
			return
		}
		name, _, _ := strings.Cut(filepath.Base(r.URL.Path), "-")
		wheel := x.wheels[name]
		switch {
		case wheel == nil:
			http.NotFound(w, r)
		case strings.HasPrefix(r.URL.Path, "/simple/"):
			hash := x.hashes[name]
			if hash == "" {
				sum := sha256.Sum256(wheel)
				hash = hex.EncodeToString(sum[:])
			}
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<a href="/files/%s-1.0-py3-none-any.whl#sha256=%s">%[1]s-1.0-py3-none-any.whl</a>`, name, hash)
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(wheel))
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// put puts a wheel with a module, and other files, into the index.
func (x *index) put(t *testing.T, name string, files map[string]string) {
	t.Helper()
	var b, record bytes.Buffer
	z := zip.NewWriter(&b)
	info := name + "-1.0.dist-info/"
	all := map[string]string{
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n", info + "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
		name + ".py": "NAME = __name__\n",
	}
	maps.Copy(all, files)
	for file, content := range all {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(content))
		fmt.Fprintf(&record, "%s,sha256=%s,\n", file, base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	w, err := z.Create(info + "RECORD")
	if err == nil {
		_, err = w.Write(append(record.Bytes(), info+"RECORD,,\n"...))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wheels[name] = b.Bytes()
}

// TestPackagesOfAnotherIndex has the real uv and an index that is hostile or broken. The
// index has an address that code could never reach.
func TestPackagesOfAnotherIndex(t *testing.T) {
	t.Parallel()
	needPyPI(t) // for uv
	h := firstHost(t)
	dir, write := policyFolder(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir})
	c.python(t, script("import six; print(1)", "six")).want(t, "1")
	x := startIndex(t)
	policy := func(more string) { write(fmt.Sprintf("[packages]\nindex = %q\n%s", x.URL+"/simple", more)) }
	policy("")
	x.put(t, "good", nil)
	x.put(t, "needs", map[string]string{"needs-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: needs\nVersion: 1.0\nRequires-Dist: good\n"})
	c.python(t, script("import needs, good; print(needs.NAME, good.NAME)", "needs")).want(t, "needs good")
	// Code itself reaches nothing, also while it has packages.
	c.python(t, script("import socket\ntry: socket.create_connection(('127.0.0.1', "+x.URL[strings.LastIndexByte(x.URL, ':')+1:]+"))\nexcept OSError as e: print(type(e).__name__)", "good")).want(t, "ConnectionRefusedError")

	x.put(t, "traversal", map[string]string{"../evil.py": ""})
	x.put(t, "nosum", nil)
	x.put(t, "inert", map[string]string{"inert.pth": "import os; os.write(2, b'ran')\n", "inert-1.0.data/scripts/inert": "#!python\n"})
	x.mu.Lock()
	x.hashes["nosum"] = strings.Repeat("0", 64)
	x.mu.Unlock()
	c.python(t, script("import inert, os, subprocess, sys\nprint(sorted(n for n in os.listdir('/run/toolcell/packages') if not n.startswith('_')), subprocess.run([sys.executable, '-c', ''], capture_output=True))", "inert")).
		want(t, "['inert-1.0.dist-info', 'inert.py'] CompletedProcess(args=['/usr/bin/python3', '-c', ''], returncode=0, stdout=b'', stderr=b'')")
	for _, tt := range []struct{ policy, name, status, want string }{
		{"", "traversal", "sandbox_error", `"../evil.py" is not a name that a wheel may have`},
		{"", "nosum", "sandbox_error", "its SHA-256 is"},
		{"", "six", "validation_error", `there is no package "six" in the index ` + x.URL + "/simple"},
		{`excludeNewer = "3 days"`, "good", "validation_error", "[packages] excludeNewer"},
	} {
		policy(tt.policy)
		if r := c.python(t, script("print('ran')", tt.name)); r.status() != tt.status || !strings.Contains(r.text, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, r.text, tt.want)
		}
	}
	policy("maxTime = '3s'")
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"it answers 429 Too Many Requests": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		},
		"longer than 3s ([packages] maxTime)": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
		"it answers 403 Forbidden": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		},
	} {
		x.mu.Lock()
		x.answer = answer
		x.mu.Unlock()
		if strings.HasPrefix(name, "it answers") {
			policy("")
		} else {
			policy("maxTime = '3s'")
		}
		if r := c.python(t, script("print('ran')", "new"+fmt.Sprint(len(name)))); r.status() != "sandbox_error" || !strings.Contains(r.text, name) {
			t.Errorf("got %s\nwant %s", r.text, name)
		}
	}
}

// TestPackagesAfterAKill kills a process at several moments while it gets packages.
// Whatever it leaves, the next one has them.
func TestPackagesAfterAKill(t *testing.T) {
	t.Parallel()
	needPyPI(t)
	h := firstHost(t)
	for _, after := range []time.Duration{50, 200, 400, 800, 1600, 3200} {
		e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": filepath.Join(h.home, fmt.Sprint("killed-", int(after)))}
		code := script("import httpx; print('ran')", "httpx")
		killed := h.command(t, e, "exec", "-q", "-c", code)
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(after*time.Millisecond, func() { _ = killed.Process.Signal(syscall.SIGKILL) })
		_ = killed.Wait()
		if out, errs, code := h.run(t, e, "exec", "-q", "-c", code); code != 0 || out != "ran\n" {
			t.Errorf("killed after %d ms: status %d, %q\n%s", after, code, out, errs)
		}
		for _, folder := range []string{"wheels", "sets", "uv"} {
			if left, _ := filepath.Glob(filepath.Join(e["TOOLCELL_STATE_DIR"], "cache", "packages", folder, ".tmp-*")); left != nil {
				t.Errorf("killed after %d ms: %q stay", after, left)
			}
		}
	}
}

// TestIndexWithALogin asks for a name and a password. Neither is seen anywhere.
func TestIndexWithALogin(t *testing.T) {
	// Not parallel: it searches the whole home, where other tests remove files.
	needPyPI(t) // for uv
	const password, encoded = "p4ssw0rd-of-the-index", "bWU6cDRzc3cwcmQtb2YtdGhlLWluZGV4"
	h := firstHost(t)
	dir, write := policyFolder(t)
	e := env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir, "TOOLCELL_STATE_DIR": filepath.Join(h.home, "login-state"), "TOOLCELL_LOG_LEVEL": "DEBUG"}
	if _, errs, code := h.run(t, e, "packages", "add", "six"); code != 0 {
		t.Fatal(errs)
	}
	x := startIndex(t)
	x.put(t, "private", map[string]string{"private-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: private\nVersion: 1.0\nRequires-Dist: other\n"})
	x.put(t, "other", nil)
	x.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if user, got, _ := r.BasicAuth(); user == "me" && got == password {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintln(w, "not", r.Header.Get("Authorization"))
		return true
	}
	index := fmt.Sprintf("[packages]\nindex = %q\n", x.URL+"/simple")
	code := script("import private, other, os; print(private.NAME, other.NAME, dict(os.environ), open('/proc/self/environ').read())", "private")
	file := filepath.Join(h.home, "login.py")
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	run := func(e env, want string, args ...string) {
		t.Helper()
		out, errs, _ := h.run(t, e, args...)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%s:\n%s%s\nwant %s", args, out, errs, want)
		}
		said.WriteString(out + errs)
	}
	write(index)
	run(e, "it answers 401 Unauthorized; a name and a password for it go into [packages] credential", "exec", file)
	write(index + "credential = { user = 'me', password = '${env:INDEX_PASSWORD}' }")
	run(e, "the variable INDEX_PASSWORD is not set", "exec", file)
	run(e.with("INDEX_PASSWORD", password+"-but-wrong"), "it answers 401 Unauthorized", "exec", file)
	e = e.with("INDEX_PASSWORD", password)
	run(e, "private other {", "exec", file)
	run(e, "pylock.login.toml", "packages", "lock", file)
	run(e, "private other {", "exec", file)
	run(e, "", "packages", "list", "--json")
	// With TLS, which the way out of the sandbox ends for this host alone.
	secure := httptest.NewTLSServer(x.Config.Handler)
	t.Cleanup(secure.Close)
	roots := filepath.Join(h.home, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	write(fmt.Sprintf("[packages]\nindex = %q\ncredential = { user = 'me', password = '${env:INDEX_PASSWORD}' }", secure.URL+"/simple"))
	e = e.with("SSL_CERT_FILE", roots)
	run(e, "private other {", "exec", "-c", code)
	run(e.with("INDEX_PASSWORD", "wrong"), "it answers 401 Unauthorized", "packages", "add", "private")
	kept := exec.Command("grep", "-rlE", password+"|"+encoded, h.home)
	if out, _ := kept.CombinedOutput(); len(out) > 0 {
		t.Errorf("it is in files:\n%s", out)
	}
	if strings.Contains(said.String(), password) || strings.Contains(said.String(), encoded) {
		t.Errorf("it is in what was printed:\n%s", said.String())
	}
}

// TestTemplatesImportNothingOfPackages: subprocess, which templates import, asks for
// msvcrt, which only Windows has.
func TestTemplatesImportNothingOfPackages(t *testing.T) {
	t.Parallel()
	needPyPI(t) // for uv
	h := firstHost(t)
	dir, write := policyFolder(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir, "TOOLCELL_START": "fork"})
	c.python(t, script("import six; print(1)", "six")).want(t, "1")
	x := startIndex(t)
	write(fmt.Sprintf("[packages]\nindex = %q", x.URL+"/simple"))
	x.put(t, "evil", map[string]string{"msvcrt.py": "", "_winapi.py": "", "sitecustomize.py": "", "usercustomize.py": ""})
	const code = "import sys; print([m for m in ('msvcrt', '_winapi', 'evil') if m in sys.modules], 'subprocess' in sys.modules)\n" +
		"import evil, msvcrt; print(msvcrt.__file__)"
	for range 3 {
		c.python(t, script(code, "evil")).want(t, "[] True\n/run/toolcell/packages/msvcrt.py")
	}
}
