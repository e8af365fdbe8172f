package images

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// TestManifestsOfOldAreRefused with what cures it.
func TestManifestsOfOldAreRefused(t *testing.T) {
	for _, kind := range []types.MediaType{types.DockerManifestSchema1, types.DockerManifestSchema1Signed} {
		host := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/manifests/") {
					h.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", string(kind))
				_, _ = io.WriteString(w, `{"schemaVersion":1,"name":"py","tag":"3","fsLayers":[]}`)
			})
		})
		if err := pullAll(Puller{}, host+"/py:3"); err == nil || !strings.Contains(err.Error(), "Docker's schema 1 of 2013") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestManifestsOfAWebServer: it calls them all JSON, so what they are is in them alone.
func TestManifestsOfAWebServer(t *testing.T) {
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = w.Write(rec.Body.Bytes())
		})
	})
	push(t, host+"/py:3", indexOf(t, hostPlatform()))
	if err := pullAll(Puller{}, host+"/py:3"); err != nil {
		t.Error(err)
	}
}
