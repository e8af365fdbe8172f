package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestPlacesThatAreNotRead: the error says what to use instead.
func TestPlacesThatAreNotRead(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("image.tar", nil, 0o600), os.WriteFile("python", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"docker-daemon:python:3":    "docker-archive:FILE",
		"containers-storage:python": "oci-archive:FILE",
		"dir:/tmp/image":            "oci:OTHER",
		"/tmp/image":                "use oci:/tmp/image",
		"./image":                   "use oci:./image",
		"../image.tar":              "use docker-archive:../image.tar or oci-archive:../image.tar",
		"~/image.tgz":               "use docker-archive:~/image.tgz or",
		"image.tar":                 "use docker-archive:image.tar or",
	} {
		if _, err := Parse(ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"python", "other.tar", "host.example/team/image.tar"} {
		if _, err := Parse(ref); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestErrorsHaveNoForeignEscapes, and no flood of names.
func TestErrorsHaveNoForeignEscapes(t *testing.T) {
	img := imageOf(t, hostPlatform(), layerOf(t, "a", compression.GZip))
	tags := map[string]v1.Image{}
	for i := range 60 {
		tags[fmt.Sprintf("\x1b[31m%d\x1b]52;c;aGk=\x07%s", i, strings.Repeat("x", 300))] = img
	}
	evil := v1.Platform{OS: "\x1b[2Jplan9", Architecture: strings.Repeat("y", 100_000)}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"\u001b[2J\u009b1m%s"}]}`, strings.Repeat("no ", 5000))
	}))
	defer registry.Close()
	evilName, host := `\u001b]0;owned\u0007`+strings.Repeat("z", 30_000), hostPlatform()
	one := fmt.Sprintf(`{"os":%q,"architecture":%q,"rootfs":{"diff_ids":["sha256:%s"]}}`, host.OS, host.Architecture, strings.Repeat("a", 64))
	for name, ref := range map[string]string{
		"configuration": "docker-archive:" + savedTexts(t, `[{"Config":"`+evilName+`"}]`, "{}"),
		"layer":         "docker-archive:" + savedTexts(t, `[{"Config":"config.json","Layers":["`+evilName+`"]}]`, one),

		"tags":     "oci:" + layoutOf(t, tags),
		"platform": "oci:" + layoutOf(t, map[string]v1.Image{"a": imageOf(t, evil, layerOf(t, "a", compression.GZip))}),
		"registry": strings.TrimPrefix(registry.URL, "http://") + "/py:3",
	} {
		err := pullAll(Puller{}, ref)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if text := err.Error(); strings.ContainsAny(text, "\x1b\x07\u009b") || len(text) > 5000 {
			t.Errorf("%s: %d bytes: %.300q", name, len(text), text)
		}
	}
}

// TestFilesAreNoRegistries: what fails on this host is no outage.
func TestFilesAreNoRegistries(t *testing.T) {
	img := hostImage(t)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	dir := layoutOf(t, map[string]v1.Image{"3": img})
	if err := os.Remove(filepath.Join(dir, blobName(m.Layers[0].Digest))); err != nil {
		t.Fatal(err)
	}
	if err := pullAll(Puller{}, "oci:"+dir); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		t.Errorf("a missing blob: %v", err)
	}
	if _, err := (Puller{CAFile: "/nonexistent/ca.pem"}).Image(context.Background(), "registry.example/py:3"); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("a missing file of certificates: %v", err)
	}
}
