package rootfs

import "testing"

func TestNearImageIsNamed(t *testing.T) {
	here := []string{"python:3.14-slim", "docker.io/library/python:3.11", "oci:/srv/science"}
	for name, want := range map[string]string{
		"pyhton:3.14-slim": `there is no image "pyhton:3.14-slim" here; did you mean "python:3.14-slim"?`,
		"python:3.14-slm":  `there is no image "python:3.14-slm" here; did you mean "python:3.14-slim"?`,
		"science":          `there is no image "science" here; did you mean "oci:/srv/science"?`,
		"alpine:latest":    "there is no image \"alpine:latest\" here; `toolcell images list` shows those that are",
	} {
		if got := unknownImage(name, here); got.Error() != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
