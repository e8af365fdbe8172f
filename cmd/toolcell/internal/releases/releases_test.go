package releases

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/program"
)

const (
	index  = "application/vnd.pypi.simple.v1+json"
	object = "application/json; charset=utf-8"
)

func TestNewest(t *testing.T) {
	for name, c := range map[string]struct {
		in           program.Registry
		path         string // that may be asked for
		kind, answer string
		newest       string
		reason       string
	}{
		"PyPI": {program.PyPI, "/simple/toolcell/", index, `{"files": [
			{"filename": "toolcell-0.9.0-py3-none-manylinux_2_17_x86_64.whl"}, {"filename": "toolcell-0.10.0-py3-none-manylinux_2_17_aarch64.whl", "yanked": false},
			{"filename": "toolcell-0.11.0-py3-none-any.whl", "yanked": true}, {"filename": "toolcell-0.12.0-py3-none-any.whl", "yanked": "broken"},
			{"filename": "toolcell-1.0.0rc1-py3-none-any.whl"}, {"filename": "toolcell-2.0.tar.gz"}, {"filename": "toolcell_x-3.0.0-py3-none-any.whl"}]}`, "0.10.0", ""},
		"PyPI without a release": {program.PyPI, "/simple/toolcell/", index, `{"files": []}`, "", "it has no release of toolcell"},
		"PyPI in HTML":           {program.PyPI, "/simple/toolcell/", "text/html", `<a href="x">x</a>`, "", `it answered with "text/html" instead of JSON`},
		"PyPI with a list":       {program.PyPI, "/simple/toolcell/", index, `[]`, "", "its answer is not that of an index of packages"},
		"npm":                    {program.NPM, "/npm/toolcell/latest", object, `{"name": "toolcell", "version": "0.2.0"}`, "0.2.0", ""},
		"npm without a version":  {program.NPM, "/npm/toolcell/latest", object, `{"version": "\u001b[2Jlatest"}`, "", "its answer has no version"},
		"npm with a number":      {program.NPM, "/npm/toolcell/latest", object, `{"version": 2}`, "", "its answer has no version"},
		"npm with text":          {program.NPM, "/npm/toolcell/latest", object, `0.2.0`, "", "its answer has no version"},
		"npm without toolcell":   {program.NPM, "/nowhere", object, `{}`, "", "it has no toolcell"},
		"GitHub":                 {program.GitHub, "/api/repos/toolcell/toolcell/releases/latest", object, `{"tag_name": "v0.3.1"}`, "0.3.1", ""},
		"a huge answer":          {program.GitHub, "/api/repos/toolcell/toolcell/releases/latest", object, strings.Repeat(" ", maxAnswer) + "{}", "", "its answer has more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != c.path {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", c.kind)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			r := Registries{PyPI: server.URL + "/simple/", NPM: server.URL + "/npm/", GitHub: server.URL + "/api"}
			newest, host, err := r.Newest(t.Context(), c.in)
			reason := ""
			if err != nil {
				reason = err.Error()
			}
			if want := "asking " + host + " for the newest release: " + c.reason; newest != c.newest || c.reason != "" && reason != want || c.reason == "" && err != nil {
				t.Errorf("got %q, %q\nwant %q, %q", newest, reason, c.newest, want)
			}
			if !strings.HasSuffix(server.URL, host) {
				t.Errorf("the host is %q", host)
			}
		})
	}
}

// TestErrorsHaveNoPassword: an index may want one, which stands in its address.
func TestErrorsHaveNoPassword(t *testing.T) {
	for _, address := range []string{"http://ann:s3cret@127.0.0.1:1/simple", "ann:s3cret", "http://ann:s3cret@[::1/"} {
		_, _, err := Registries{PyPI: address}.Newest(t.Context(), program.PyPI)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestUsersRegistries(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		t.Setenv(name, "")
	}
	if got := User(); got != (Registries{}) {
		t.Errorf("with nothing set it is %+v", got)
	}
	text := "# registry=https://no.example\n@mine:registry=https://mine.example\nregistry = \"https://npm.example/\"\n"
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PIP_INDEX_URL", "https://pip.example/simple")
	if got, want := User(), (Registries{PyPI: "https://pip.example/simple", NPM: "https://npm.example/"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	t.Setenv("UV_DEFAULT_INDEX", "https://uv.example/simple")
	t.Setenv("npm_config_registry", "https://npx.example")
	if got, want := User(), (Registries{PyPI: "https://uv.example/simple", NPM: "https://npx.example"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
