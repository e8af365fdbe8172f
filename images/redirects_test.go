package images

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestRedirectsThatAreNotFollowed are the registry's fault, not the network's: no mirror or
// later try helps.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	for to, want := range map[string]struct{ text, advice string }{
		"http://cdn.invalid/x": {
			"cdn.invalid would be spoken to without encryption",
			"if you trust the network: TOOLCELL_INSECURE_REGISTRIES=cdn.invalid",
		},
		"https://10.0.0.1/x": {"the registry registry.example leads to the internal address 10.0.0.1", ""},
		"/manifests/again":   {"the registry redirects without end", ""},
	} {
		asked := 0
		registry := trip(func(r *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
			if asked++; strings.Contains(r.URL.Path, "/manifests/") && asked < 50 {
				resp.StatusCode, resp.Header = http.StatusTemporaryRedirect, http.Header{"Location": {to}}
			}
			return resp, nil
		})
		err := pullAll(Puller{Transport: registry}, "registry.example/py:3")
		told := (*RegistryError)(nil)
		if !errors.As(err, &told) || err.Error() != `reading image "registry.example/py:3": `+want.text || told.Advice() != want.advice {
			t.Errorf("%s: %v", to, err)
		}
		if errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v counts as unavailable", to, err)
		}
	}
}

// TestRegistryOfThisHostMayLeadInside under any name of this host.
func TestRegistryOfThisHostMayLeadInside(t *testing.T) {
	for _, host := range []string{"localhost:5000", "registry.localhost:5000", "127.0.0.1:5000"} {
		registry := trip(func(r *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
			switch {
			case strings.Contains(r.URL.Path, "/manifests/"):
				resp.StatusCode, resp.Header = http.StatusTemporaryRedirect, http.Header{"Location": {"https://10.0.0.1:5001/blob"}}
			case r.URL.Host == "10.0.0.1:5001":
				resp.StatusCode = http.StatusNotFound
			}
			return resp, nil
		})
		err := pullAll(Puller{Transport: registry}, host+"/py:3")
		if err == nil || !strings.Contains(err.Error(), host+" has no such image") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
