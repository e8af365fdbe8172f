package images

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestIndexWithoutThePlatform: its error names what it has, but no attestations of a build.
func TestIndexWithoutThePlatform(t *testing.T) {
	noise := descriptor{Platform: &platform{OS: "unknown", Architecture: "unknown"}}
	arm := descriptor{Platform: &platform{OS: "linux", Architecture: "arm", Variant: "v7"}}
	for has, entries := range map[string][]descriptor{
		"linux/arm/v7":       {{}, noise, arm, arm},
		"no platform at all": {{}, noise},
	} {
		got, err := chooseManifest(entries, v1.Platform{OS: "linux", Architecture: "s390x"})
		if want := "the image has nothing for linux/s390x; it has " + has; err == nil || err.Error() != want {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}
}
