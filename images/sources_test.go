package images

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

func TestMirrorIsAskedFirst(t *testing.T) {
	var origin atomic.Int32
	far := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				origin.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	near := serve(t, nil)
	img := hostImage(t)
	push(t, near+"/cache/team/py:3", img)
	push(t, far+"/team/py:only-there", img)
	origin.Store(0)
	p := Puller{Mirrors: map[string][]string{far: {"127.0.0.1:1", near + "/cache"}}}
	if err := pullAll(p, far+"/team/py:3"); err != nil || origin.Load() != 0 {
		t.Errorf("the registry itself was asked %d times: %v", origin.Load(), err)
	}
	if err := pullAll(p, far+"/team/py:only-there"); err != nil {
		t.Errorf("what no mirror has: %v", err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := pullAll(p, far+"/team/py@"+digest.String()); err != nil {
		t.Errorf("by digest: %v", err)
	}
	err = pullAll(p, far+"/team/py:nowhere")
	if err == nil || !strings.Contains(err.Error(), "no such image") || !strings.Contains(err.Error(), "mirror 127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

func TestParseMirrors(t *testing.T) {
	mirrors, plain, err := ParseMirrors("docker.io=https://a.example/hub/,http://b.example:5000  ghcr.io=localhost")
	if err != nil || !slices.Equal(mirrors[name.DefaultRegistry], []string{"a.example/hub", "b.example:5000"}) ||
		!slices.Equal(mirrors["ghcr.io"], []string{"localhost"}) || !slices.Equal(plain, []string{"b.example:5000"}) {
		t.Errorf("got %v, %v, %v", mirrors, plain, err)
	}
	for _, bad := range []string{"docker.io", "=a.example", "docker.io=", "docker.io=a b", "docker.io=UPPER/Case?", "docker.io=nodots"} {
		if m, _, err := ParseMirrors(bad); err == nil {
			t.Errorf("%q: got %v", bad, m)
		}
	}
}

// tlsRegistry starts a registry with a certificate of its own CA, which is in
// the file.
func tlsRegistry(t *testing.T) (host, ca string) {
	t.Helper()
	srv := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(srv.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(srv.URL, "https://"), ca
}

func TestOwnCertificates(t *testing.T) {
	host, ca := tlsRegistry(t)
	ref := host + "/py:3"
	err := pullAll(Puller{}, ref)
	if err == nil || !strings.Contains(err.Error(), "an unknown authority") || errors.Is(err, ErrUnavailable) {
		t.Errorf("without the certificate: %v", err)
	}
	if err := pullAll(Puller{CAFile: ca}, ref); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("with the certificate: %v", err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".config/containers/certs.d", host)
	pem, err := os.ReadFile(ca)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "ca.crt"), pem, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := pullAll(Puller{}, ref); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("with the certificate where podman has it: %v", err)
	}
	for content, want := range map[string]string{"": "has none", "no PEM": "has none"} {
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := pullAll(Puller{CAFile: bad}, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if err := pullAll(Puller{CAFile: "/nonexistent"}, ref); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("got %v", err)
	}
}

func TestPlainHTTPWhereItIsAllowed(t *testing.T) {
	for host, allowed := range map[string][]string{
		"10.1.2.3:5000":       {"10.1.2.3:5000"},
		"registry.invalid:80": {"registry.invalid"},
		"[2001:db8::1]:5000":  {"[2001:db8::1]"},
		"[2001:db8::2]:5000":  {"2001:db8::2"},
	} {
		var plain atomic.Bool
		tr := trip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Scheme == "http" {
				plain.Store(true)
			}
			return nil, errors.New("down")
		})
		if err := pullAll(Puller{Transport: tr, PlainHTTP: allowed}, host+"/py:3"); err == nil || !plain.Load() {
			t.Errorf("%s: plain HTTP was not tried: %v", host, err)
		}
	}
}

func TestInternalAddressesAreOutOfReachOfRegistries(t *testing.T) {
	for _, c := range []struct {
		registry, to string
		ok           bool
	}{
		{"registry.example", "https://cdn.example/x", true},
		{"registry.example", "https://169.254.169.254/latest", false},
		{"registry.example", "http://127.0.0.1:8080/x", false},
		{"registry.example", "https://localhost.:8080/x", false},
		{"registry.example", "https://10.0.0.1/x", false},
		{"registry.example", "https://[::ffff:10.0.0.1]/x", false},
		{"registry.example", "https://[fe80::1]/x", false},
		{"registry.example", "https://100.100.100.200/latest", false},
		{"registry.example", "https://168.63.129.16/machine", false},
		{"registry.example", "https://[64:ff9b::a9fe:a9fe]/latest", false},
		{"registry.example", "https://LOCALHOST/x", false},
		{"168.63.129.16", "https://10.0.0.6/x", false},
		{"127.0.0.1", "http://127.0.0.1:5001/x", true},
		{"10.0.0.5", "https://10.0.0.6/x", true},
		{"10.0.0.5", "https://cdn.example/x", true},
	} {
		g := &guardTransport{registry: c.registry, puller: Puller{PlainHTTP: []string{"127.0.0.1"}}, inner: trip(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
		})}
		req, err := http.NewRequest(http.MethodGet, c.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Response = &http.Response{} // a redirect
		resp, err := g.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.registry, c.to, err)
		}
	}
}

// TestTokensAreNotAskedForInside: a registry names the address that gives out tokens.
func TestTokensAreNotAskedForInside(t *testing.T) {
	for _, realm := range []string{"https://127.0.0.1:8443/admin", "https://100.100.100.200/latest", "http://10.0.0.1/"} {
		var inside atomic.Bool
		server := trip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Hostname() != "registry.example" {
				inside.Store(true)
			}
			return &http.Response{
				StatusCode: http.StatusUnauthorized, Body: http.NoBody, Request: req,
				Header: http.Header{"Www-Authenticate": {`Bearer realm="` + realm + `",service="x"`}},
			}, nil
		})
		if err := pullAll(Puller{Transport: server}, "registry.example/py:3"); err == nil || inside.Load() {
			t.Errorf("%s: asked %v, %v", realm, inside.Load(), err)
		}
	}
}

func TestCredentials(t *testing.T) {
	repo, err := name.NewRepository("registry.example/team/py")
	if err != nil {
		t.Fatal(err)
	}
	hub, err := name.NewRepository("python")
	if err != nil {
		t.Fatal(err)
	}
	helpers := t.TempDir()
	helper := "#!/bin/sh\nread server; echo '{\"ServerURL\":\"x\",\"Username\":\"helped\",\"Secret\":\"s\"}'\n"
	for name, script := range map[string]string{
		"test": helper, "broken": "#!/bin/sh\necho 'no bus' >&2; exit 1\n", "empty": "#!/bin/sh\necho 'credentials not found in native keychain'; exit 1\n",
	} {
		if err := os.WriteFile(filepath.Join(helpers, "docker-credential-"+name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const ada, bob = `{"auth":"YWRhOnNlY3JldA=="}`, `{"auth":"Ym9iOnNlY3JldA=="}`
	for what, c := range map[string]struct {
		files map[string]string // relative to HOME
		env   map[string]string // $HOME is replaced
		repo  name.Repository
		want  string
	}{
		"nothing":                     {nil, nil, repo, ""},
		"Docker's":                    {map[string]string{".docker/config.json": `{"auths":{"registry.example":` + ada + `}}`}, nil, repo, "ada"},
		"Docker's for another":        {map[string]string{".docker/config.json": `{"auths":{"other.example":` + ada + `}}`}, nil, repo, ""},
		"Docker Hub":                  {map[string]string{".docker/config.json": `{"auths":{"https://index.docker.io/v1/":` + ada + `}}`}, nil, hub, "ada"},
		"Docker Hub as podman has it": {map[string]string{".config/containers/auth.json": `{"auths":{"docker.io":` + ada + `}}`}, nil, hub, "ada"},
		"DOCKER_CONFIG":               {map[string]string{"d/config.json": `{"auths":{"registry.example":` + ada + `}}`}, map[string]string{"DOCKER_CONFIG": "$HOME/d"}, repo, "ada"},
		"REGISTRY_AUTH_FILE":          {map[string]string{"f": `{"auths":{"registry.example":` + ada + `}}`}, map[string]string{"REGISTRY_AUTH_FILE": "$HOME/f"}, repo, "ada"},
		"podman's":                    {map[string]string{"r/containers/auth.json": `{"auths":{"registry.example":` + ada + `}}`}, map[string]string{"XDG_RUNTIME_DIR": "$HOME/r"}, repo, "ada"},
		"podman's, kept":              {map[string]string{".config/containers/auth.json": `{"auths":{"registry.example":` + ada + `}}`}, nil, repo, "ada"},
		"by the path, longest first":  {map[string]string{".config/containers/auth.json": `{"auths":{"registry.example":` + bob + `,"registry.example/team":` + ada + `}}`}, nil, repo, "ada"},
		"podman's beside an empty one of Docker's": {
			map[string]string{".docker/config.json": `{}`, ".config/containers/auth.json": `{"auths":{"registry.example":` + ada + `}}`}, nil, repo, "ada",
		},
		"helper of one registry": {map[string]string{".docker/config.json": `{"credHelpers":{"registry.example":"test"}}`}, nil, repo, "helped"},
		"helper of all":          {map[string]string{".docker/config.json": `{"credsStore":"test"}`}, nil, repo, "helped"},
		"Docker's of old":        {map[string]string{".docker/config.json": `{"auths":{"https://registry.example/v1/":` + ada + `}}`}, nil, repo, "ada"},
		"of another path":        {map[string]string{".docker/config.json": `{"auths":{"registry.example/other":` + ada + `,"https://registry.example/other/":` + ada + `}}`}, nil, repo, ""},
		"helper that fails":      {map[string]string{".docker/config.json": `{"credsStore":"broken"}`}, nil, repo, ""},
		"helper without any":     {map[string]string{".docker/config.json": `{"credsStore":"empty"}`}, nil, repo, ""},
		"helper that is gone":    {map[string]string{".docker/config.json": `{"credsStore":"desktop.exe"}`}, nil, repo, ""},
	} {
		t.Run(what, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("PATH", helpers+":"+os.Getenv("PATH"))
			for _, k := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
				t.Setenv(k, "")
			}
			for k, v := range c.env {
				t.Setenv(k, strings.ReplaceAll(v, "$HOME", home))
			}
			for file, content := range c.files {
				file = filepath.Join(home, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			auth, err := (&logins{}).find(t.Context(), c.repo)
			if err != nil {
				t.Fatal(err)
			}
			got, err := auth.Authorization()
			if err != nil || got.Username != c.want {
				t.Errorf("got %q, %v, want %q", got.Username, err, c.want)
			}
			if c.want == "" && auth != authn.Anonymous {
				t.Errorf("got %v", auth)
			}
		})
	}
}

func TestDamagedCredentialsAreNamed(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", home)
	file := filepath.Join(home, "config.json")
	for content, want := range map[string]string{
		"{":                               `line 1: it is not valid JSON`,
		"{\n\"auths\": {},\n}\n":          `line 3: it is not valid JSON`,
		"{\n\"auths\": {},,\n\"x\": 1\n}": `line 2: it is not valid JSON`,
		"{\n\"auths\": [],\n\"x\": 1\n}":  `line 2: "auths" must be an object, not an array`,
		"{\n\"auths\": []}":               `line 2: "auths" must be an object, not an array`,
		`{"auths": {"x": {"auth": 7}}}`:   `line 1: "auths.x.auth" must be a string, not a number`,
		`{"credHelpers": {"x": true}}`:    `line 1: "credHelpers.x" must be a string, not true or false`,
		`{"detachKeys": "", "auths": ""}`: `line 1: "auths" must be an object, not a string`,
		"[]":                              `line 1: it must be an object, not an array`,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := pullAll(Puller{}, "127.0.0.1:1/py:3"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q: %s", file, want)) {
			t.Errorf("%s: got %v, want %s", content, err, want)
		}
	}
}

// TestHelperThatFails does not block a public image, and is named if the registry
// refuses access.
func TestHelperThatFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credsStore":"broken"}`), 0o600),
		os.WriteFile(filepath.Join(dir, "docker-credential-broken"), []byte("#!/bin/sh\necho no bus >&2; exit 1\n"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	open := serve(t, nil)
	push(t, open+"/py:3", hostImage(t))
	if err := pullAll(Puller{}, open+"/py:3"); err != nil {
		t.Errorf("a public image: %v", err)
	}
	closed := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	})
	if err := pullAll(Puller{}, closed+"/py:3"); err == nil || !strings.Contains(err.Error(), `credential helper "broken"`) || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("a private one: %v", err)
	}
}

// TestAllHelpersThatFailedAreNamed, in one line.
func TestAllHelpersThatFailedAreNamed(t *testing.T) {
	p := place{name: "registry.invalid", stored: &logins{failed: []error{errors.New("a failed"), errors.New("b failed")}}}
	err := p.refusal(&transport.Error{StatusCode: http.StatusForbidden}, errors.New("refused"))
	if want := "registry.invalid refused access: the image is private or does not exist; a failed; b failed"; err.Error() != want {
		t.Errorf("got %q", err)
	}
}

// TestHelperThatHangs is ended.
func TestHelperThatHangs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-slow"), []byte("#!/bin/sh\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := askHelper(ctx, "slow", "registry.example"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v", err)
	}
}
