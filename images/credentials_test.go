package images

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// TestHelperIsAskedForEachKey until it knows one.
func TestHelperIsAskedForEachKey(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(`#!/bin/sh
read server
case "$server" in
registry.example) echo '{"Username":"helped","Secret":"s"}' ;;
token.example) echo '{"Username":"<token>","Secret":"t"}' ;;
*) echo 'credentials not found in native keychain'; exit 1 ;;
esac
`), 0o700),
		os.WriteFile(filepath.Join(dir, "docker-credential-"), []byte("#!/bin/sh\nexit 1\n"), 0o700), // that no file names
	)
	if err != nil {
		t.Fatal(err)
	}
	helped := authn.AuthConfig{Username: "helped", Password: "s"}
	for what, c := range map[string]struct {
		repo, file string
		want       authn.AuthConfig
	}{
		"all with one helper":          {"registry.example/team/py", `{"credsStore":"test"}`, helped},
		"only the registry with one":   {"registry.example/team/py", `{"credHelpers":{"registry.example":"test"}}`, helped},
		"another is gone":              {"registry.example/team/py", `{"credHelpers":{"registry.example/team":"gone","registry.example":"test"}}`, helped},
		"an entry without credentials": {"registry.example/team/py", `{"auths":{"registry.example":{}},"credsStore":"test"}`, helped},
		"a token":                      {"token.example/py", `{"credsStore":"test"}`, authn.AuthConfig{IdentityToken: "t"}},
		"it knows none":                {"other.example/py", `{"credsStore":"test"}`, authn.AuthConfig{}},
	} {
		file := filepath.Join(dir, "auth.json")
		if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		repo, err := name.NewRepository(c.repo)
		if err != nil {
			t.Fatal(err)
		}
		l := &logins{file: file}
		auth, err := l.find(t.Context(), repo)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got, err := auth.Authorization(); err != nil || *got != c.want || len(l.failed) > 0 {
			t.Errorf("%s: got %+v, %v, failures %v", what, got, err, l.failed)
		}
	}
}

// TestPlacesOfCredentials that are used without a variable, and that a variable names.
func TestPlacesOfCredentials(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, k := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR"} {
		t.Setenv(k, "")
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "settings"))
	want := []string{
		fmt.Sprintf("/run/user/%d/containers/auth.json", os.Getuid()),
		home + "/settings/containers/auth.json",
		home + "/.config/containers/auth.json",
		home + "/.docker/config.json",
	}
	if got := credentialFiles(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFileOfCredentialsThatCannotBeRead is named once, before any request.
func TestFileOfCredentialsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd.json")
	if err := os.WriteFile(odd, []byte(`{"auths":{"registry.example":{"auth":"?"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		dir + "/missing.json": "open " + dir + "/missing.json: no such file or directory",
		odd:                   fmt.Sprintf("%q: illegal base64 data at input byte 0", odd),
	} {
		_, err := Puller{AuthFile: file}.Image(t.Context(), "registry.example/py:3")
		if want = `reading image "registry.example/py:3": reading credentials for registry.example: ` + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
