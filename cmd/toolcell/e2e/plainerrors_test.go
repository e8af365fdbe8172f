package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// libraryWords are those of Go's network packages, of libcontainer and of our
// protocol, which do not help the reader of an error.
var libraryWords = regexp.MustCompile(`dial tcp|lookup|Get "|proxyconnect|runc|nsexec|unable to start|sandbox_error|validation_error|openat|EOF|%!`)

// answering is a registry that gives one answer.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestErrorsArePlain: a person reads one sentence and what to do, and a model the
// same; what the libraries say is there at the level DEBUG.
func TestErrorsArePlain(t *testing.T) {
	h := firstHost(t)
	missing, private, broken := answering(t, 404, ""), answering(t, 401, "<html>no</html>"), answering(t, 400, `{"errors":[{"code":"X","message":"no room"}]}`)
	const closed = "127.0.0.1:1"
	for name, tt := range map[string]struct {
		image string
		env   env
		want  string // the whole sentence
		hint  string // a part of it
	}{
		"refused": {closed + "/py:3", nil, "cannot reach " + closed + " (connection refused)", "toolcell images list"},
		"missing": {missing + "/py:3", nil, missing + " has no such image", "the tag"},
		"private": {private + "/py:3", nil, private + " refused access: the image is private or does not exist", "docker login"},
		"answers": {broken + "/py:3", nil, broken + " answers 400 Bad Request (it says: no room)", ""},
		"a dead proxy": {
			"registry.example/py:3",
			env{"HTTPS_PROXY": "http://" + closed},
			"cannot reach the proxy " + closed + " (connection refused), through which registry.example would be asked", "HTTPS_PROXY",
		},
		"a mirror that answers": {
			"registry.example/py:3",
			env{"HTTPS_PROXY": "http://" + closed, "TOOLCELL_REGISTRY_MIRRORS": "registry.example=http://" + missing},
			"the mirror " + missing + " has no such image; cannot reach the proxy " + closed + " (connection refused), through which registry.example would be asked", "the tag",
		},
		"no folder": {"oci:" + filepath.Join(shared, "none"), nil, strconv.Quote(filepath.Join(shared, "none")) + ": no such file or folder", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sentence := "reading image " + strconv.Quote(tt.image) + ": " + tt.want
			for _, args := range [][]string{{"exec", "-c", "1", "--image", tt.image}, {"images", "pull", tt.image}} {
				_, errs, code := h.run(t, tt.env, args...)
				first, rest, _ := strings.Cut(errs, "\n")
				if code != exitFail || first != "toolcell: "+sentence || libraryWords.MatchString(errs) {
					t.Errorf("%s: exit %d\n%s\nwant\n%s", args[0], code, errs, sentence)
				}
				if tt.hint == "" != (rest == "") || !strings.HasPrefix(rest, "hint: ") && tt.hint != "" || !strings.Contains(rest, tt.hint) {
					t.Errorf("%s: the hint is %q, want %q", args[0], rest, tt.hint)
				}
				if _, errs, _ := h.run(t, tt.env, append(args, "--log-level", "DEBUG")...); strings.HasPrefix(tt.want, "cannot reach") && !strings.Contains(errs, "connect: connection refused") {
					t.Errorf("%s: the log does not have the cause: %s", args[0], errs)
				}
			}
		})
	}
	r := h.serve(t, env{"TOOLCELL_IMAGE": closed + "/py:3"}).python(t, "1")
	told := strings.TrimPrefix(r.text, "status: sandbox_error\n")
	if r.status() != "sandbox_error" || !strings.Contains(told, "cannot reach "+closed+" (connection refused)") || libraryWords.MatchString(told) {
		t.Errorf("to a model:\n%s", r.text)
	}
	for _, args := range [][]string{{"--timeout", "0", "-c", "1"}, {"--server", "none", "-c", "1"}, {"-c", ""}} {
		if _, errs, code := h.run(t, nil, append([]string{"exec", "--image", "host"}, args...)...); code != exitUsage || libraryWords.MatchString(errs) {
			t.Errorf("%v: exit %d\n%s", args, code, errs)
		}
	}
}

// TestSilentRegistryIsGivenUp within seconds, and in plain words.
func TestSilentRegistryIsGivenUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections stay in its backlog, unanswered
	host := l.Addr().String()
	_, errs, code := firstHost(t).run(t, nil, "images", "pull", host+"/py:3")
	if code != exitFail || !strings.Contains(errs, "cannot reach "+host+" (no ") || libraryWords.MatchString(errs) {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// TestHomeThatDoesNotExist is named, and the cure can be typed as it is.
func TestHomeThatDoesNotExist(t *testing.T) {
	onOrdinaryHosts(t, func(t *testing.T, h *host) {
		if os.Geteuid() == 0 && h.cred == nil {
			return // root would make it
		}
		const home = "/nonexistent/toolcell"
		for _, args := range [][]string{{"exec", "-c", "1"}, {"images", "list"}, {"serve"}} {
			_, errs, code := h.run(t, env{"HOME": home, "TOOLCELL_STATE_DIR": "", "TOOLCELL_IMAGE": "host"}, args...)
			first, hint, _ := strings.Cut(errs, "\n")
			if code != exitHost || first != "toolcell: HOME is "+home+", which does not exist, and toolcell would keep its files there (RC-STATE)" {
				t.Errorf("%s: exit %d\n%s", args[0], code, errs)
			}
			if args[0] != "exec" {
				continue
			}
			cure, _, _ := strings.Cut(strings.TrimPrefix(hint, "hint: "), "\n#")
			out, err := h.shell(t, env{"HOME": home, "TOOLCELL_STATE_DIR": "", "TOOLCELL_IMAGE": "host"}, cure+"\n"+`exec "$@"`, "exec", "-q", "-c", "print('works')").CombinedOutput()
			if err != nil || string(out) != "works\n" {
				t.Errorf("after %q: %v\n%s", cure, err, out)
			}
		}
	})
}
