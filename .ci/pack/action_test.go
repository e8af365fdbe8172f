package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// releases serves a release as GitHub does. Its program says what it is.
func releases(t *testing.T, change func(name string, content []byte) []byte) *httptest.Server {
	t.Helper()
	p := newPack(t)
	tree := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "bin/toolcell"), []byte("#!/bin/sh\necho the program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	name, err := p.tarball(runtime.GOARCH, tree)
	if err != nil {
		t.Fatal(err)
	}
	tarball, err := os.ReadFile(filepath.Join(p.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{name: tarball, "SHA256SUMS": fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(tarball), name)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, ok := strings.CutPrefix(r.URL.Path, "/download/v0.1.0/")
		switch content := files[asked]; {
		case r.URL.Path == "/latest":
			http.Redirect(w, r, "/tag/v0.1.0", http.StatusFound)
		case r.URL.Path == "/tag/v0.1.0":
		case !ok || content == nil:
			http.NotFound(w, r)
		default:
			_, _ = w.Write(change(asked, content))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// step runs the first step of the action, and returns what it printed and what it left for
// later steps.
func step(t *testing.T, server, version string) (printed string, later map[string]string, err error) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl: apt-get install curl")
	}
	dir := t.TempDir()
	c := exec.Command("../action/install.sh")
	c.Env = append(os.Environ(), "RELEASES="+server, "VERSION="+version, "IMAGE=python:3.14-slim", "RUNNER_TOOL_CACHE="+dir)
	files := []string{"GITHUB_PATH", "GITHUB_ENV", "GITHUB_OUTPUT"}
	for _, name := range files {
		c.Env = append(c.Env, name+"="+filepath.Join(dir, name))
	}
	out, err := c.CombinedOutput()
	later = map[string]string{}
	for _, name := range files {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		later[name] = strings.ReplaceAll(string(text), dir, "DIR")
	}
	return string(out), later, err
}

func same(_ string, content []byte) []byte { return content }

func TestActionInstallsARelease(t *testing.T) {
	for _, version := range []string{"0.1.0", "v0.1.0", "latest"} {
		printed, later, err := step(t, releases(t, same).URL, version)
		if err != nil || printed != "the program\n" {
			t.Errorf("%s: %v: %s", version, err, printed)
		}
		want := map[string]string{
			"GITHUB_PATH": "DIR/toolcell/0.1.0/bin\n", "GITHUB_ENV": "TOOLCELL_IMAGE=python:3.14-slim\n", "GITHUB_OUTPUT": "version=0.1.0\n",
		}
		if fmt.Sprint(later) != fmt.Sprint(want) {
			t.Errorf("%s: it left %q, want %q", version, later, want)
		}
	}
}

func TestActionRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, version, want string
		change              func(name string, content []byte) []byte
	}{
		{"another file", "0.1.0", "is not what SHA256SUMS says", func(name string, content []byte) []byte {
			if strings.HasSuffix(name, ".gz") {
				return append([]byte("x"), content...)
			}
			return content
		}},
		{"a file without a sum", "0.1.0", "is not what SHA256SUMS says", func(name string, content []byte) []byte {
			if name == "SHA256SUMS" {
				return []byte("0  something-else\n")
			}
			return content
		}},
		{"a version that is a path", "../../x", `"../../x" is no version like 0.1.0`, same},
		{"a version that is not there", "9.9.9", "could not be fetched", same},
	} {
		printed, later, err := step(t, releases(t, tt.change).URL, tt.version)
		if err == nil || !strings.Contains(printed, "::error::") || !strings.Contains(printed, tt.want) {
			t.Errorf("%s: %v: %s", tt.name, err, printed)
		}
		if later["GITHUB_PATH"] != "" {
			t.Errorf("%s: it put something into PATH", tt.name)
		}
	}
}
