package images

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestCancelledPullAsksNoFurther, and is no outage, whatever failed before.
func TestCancelledPullAsksNoFurther(t *testing.T) {
	for _, cancelAt := range []string{"mirror.example", "registry.example"} {
		ctx, cancel := context.WithCancel(t.Context())
		var last string
		_, err := Puller{
			Mirrors: map[string][]string{"registry.example": {"mirror.example"}},
			Transport: trip(func(r *http.Request) (*http.Response, error) {
				if last = r.URL.Host; last == cancelAt {
					cancel()
					return nil, r.Context().Err()
				}
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}),
		}.Image(ctx, "registry.example/py:3")
		if last != cancelAt || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
			t.Errorf("cancelled at %s: %s was asked last: %v", cancelAt, last, err)
		}
	}
}

func TestParseMirrorsSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"docker.io":                   `"docker.io" is not REGISTRY=MIRROR`,
		"docker.io=":                  `"docker.io=" is not REGISTRY=MIRROR`,
		"docker.io=a.example/UPPER":   `"a.example/UPPER" is not a host with an optional port and path`,
		"docker.io=a.example,":        `"" is not a host with an optional port and path`,
		"ghcr.io/team=mirror.example": "registries must be valid",
	} {
		if m, _, err := ParseMirrors(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, m, err, want)
		}
	}
	for _, mirror := range []string{"a.example", "localhost", "localhost/hub", "a.example:5000/hub"} {
		if m, _, err := ParseMirrors("docker.io=" + mirror); err != nil || !slices.Equal(m[name.DefaultRegistry], []string{mirror}) {
			t.Errorf("%s: got %v, %v", mirror, m, err)
		}
	}
}
