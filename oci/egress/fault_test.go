package egress

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
)

// TestFaultIsNoPermission: whatever panics on the way of a request, nothing reaches the
// host, and the requests after it do.
func TestFaultIsNoPermission(t *testing.T) {
	for _, point := range []string{
		"egress: deciding", "egress: usage locked", "connecting to a host", "writing to a host",
		"accepting a connection of a run", "checking the name in a TLS handshake",
	} {
		t.Run(point, func(t *testing.T) {
			var reached, faults atomic.Int32
			f := newFixture(t, Options{
				Rules:   testRules{inspected: map[string][]string{"example.com": {"GET /*"}}},
				Inspect: []string{"example.com"},
			}, func(w http.ResponseWriter, r *http.Request) { reached.Add(1) })
			get := func() error {
				resp, err := f.client().Get(f.url("example.com", "/x"))
				if err == nil {
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						return &dialError{err}
					}
				}
				return err
			}
			t.Run("fault", func(t *testing.T) {
				contain.Inject(t, func(at string) bool {
					if at == point {
						faults.Add(1)
					}
					return at == point
				})
				if err := get(); err == nil && faults.Load() > 0 {
					t.Error("the request passed")
				}
			})
			if faults.Load() == 0 {
				t.Fatal("this point was not passed")
			}
			if n := reached.Load(); n != 0 {
				t.Errorf("%d requests reached the host", n)
			}
			if err := get(); err != nil || reached.Load() != 1 {
				t.Errorf("the request after it: %v", err)
			}
		})
	}
}
