package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/toolcell/toolcell/internal/seeds"
)

// FuzzParse reads whatever a user may name. The normalized name means the same image.
func FuzzParse(f *testing.F) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for _, ref := range []string{
		"python:3.14-slim", "host", "docker://ghcr.io/a/b" + digest, "oci:/srv/py:3", "oci:py" + digest, "oci-archive:/a.tar:x",
		"docker-archive:/a.tar:docker.io/library/python:3", "localhost:5000/py", "dir:/x", "./image.tar", "docker://~host.example/a", "docker://dir:3", "oci:a@sha256:b", "docker-archive:x@y:z",
	} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		r, err := Parse(ref)
		if err != nil {
			checkMessage(t, err)
			return
		}
		again, err := Parse(r.Name)
		if err != nil || again.Name != r.Name || again.Kind != r.Kind || again.Path != r.Path || again.Tag != r.Tag || again.Digest != r.Digest {
			t.Errorf("%q is %+v, and its name %+v, %v", ref, r, again, err)
		}
		if r.Path != "" && !filepath.IsAbs(r.Path) {
			t.Errorf("%q: path %q", ref, r.Path)
		}
	})
}

// FuzzSettings reads what a user may write of mirrors and platforms.
func FuzzSettings(f *testing.F) {
	f.Add("docker.io=https://a.example/hub/,http://b.example:5000  ghcr.io=localhost")
	f.Add("linux/arm/v7")
	f.Fuzz(func(t *testing.T, text string) {
		mirrors, _, err := ParseMirrors(text)
		for registry, all := range mirrors {
			for _, m := range all {
				if _, refErr := name.ParseReference(m + "/image"); err == nil && refErr != nil {
					t.Errorf("%q: %s has the mirror %q: %v", text, registry, m, refErr)
				}
			}
		}
		if p, err := ParsePlatform(text); err == nil && (p.OS != "linux" || p.Architecture == "") {
			t.Errorf("%q: %v", text, p)
		}
	})
}

// FuzzArchive reads files that someone may call an archive of images, of either kind.
func FuzzArchive(f *testing.F) {
	img := imageOf(f, hostPlatform(), layerOf(f, "a", compression.GZip))
	for _, file := range []string{savedOf(f, "py:3", img), archiveOf(f, layoutOf(f, map[string]v1.Image{"3": img})), compressed(f, savedOf(f, "py:3", img), compression.GZip)} {
		whole, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
	}
	f.Add(realLayout(f))
	f.Fuzz(func(t *testing.T, archive []byte) {
		file := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"oci-archive:", "docker-archive:"} {
			checkImageOrMessage(t, kind+file)
		}
	})
}

// realLayout is an archive of the documents of a real image and its smallest layer.
func realLayout(f *testing.F) []byte {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	blob := func(content []byte) string {
		sum := sha256.Sum256(content)
		return "blobs/sha256/" + hex.EncodeToString(sum[:])
	}
	real := seeds.Files(f, "images/testdata/python-3.14/*.*")
	for i, name := range []string{blob(real[0]), "index.json", blob(real[2]), blob(real[3])} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(real[i]))}), second(w.Write(real[i]))); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return archive.Bytes()
}

func second(_ int, err error) error { return err }

// FuzzManifest reads layouts with any index, manifest and configuration. CONFIG and
// MANIFEST in them stand for the digests, so that they fit each other.
func FuzzManifest(f *testing.F) {
	const manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"CONFIG","size":85},
		"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"CONFIG","size":85}]}`
	const config = `{"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:00"]}}`
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"MANIFEST","mediaType":"application/vnd.oci.image.manifest.v1+json"}]}`), []byte(manifest), []byte(config))
	f.Add([]byte(`{"manifests":[{"digest":"MANIFEST","mediaType":"application/vnd.oci.image.index.v1+json","platform":{"os":"linux","architecture":"amd64"}}]}`), []byte(`{"manifests":[{"digest":"CONFIG"}]}`), []byte(`{}`))
	real := seeds.Files(f, "images/testdata/python-3.14/*.json") // config, index, manifest
	manifestDigest, configDigest := regexp.MustCompile(`"digest": "sha256:[0-9a-f]{64}"`), regexp.MustCompile(`"size":955,"digest":"sha256:[0-9a-f]{64}"`)
	f.Add(manifestDigest.ReplaceAll(real[1], []byte(`"digest": "MANIFEST"`)), configDigest.ReplaceAll(real[2], []byte(`"size":955,"digest":"CONFIG"`)), real[0])
	f.Fuzz(func(t *testing.T, index, manifest, config []byte) {
		dir := t.TempDir()
		blobs := filepath.Join(dir, "blobs", "sha256")
		if err := os.MkdirAll(blobs, 0o700); err != nil {
			t.Fatal(err)
		}
		keep := func(content []byte) string {
			sum := sha256.Sum256(content)
			hex := hex.EncodeToString(sum[:])
			if err := os.WriteFile(filepath.Join(blobs, hex), content, 0o600); err != nil {
				t.Fatal(err)
			}
			return "sha256:" + hex
		}
		manifest = bytes.ReplaceAll(manifest, []byte("CONFIG"), []byte(keep(config)))
		digest := keep(manifest)
		index = bytes.ReplaceAll(index, []byte("MANIFEST"), []byte(digest))
		if err := os.WriteFile(filepath.Join(dir, "index.json"), index, 0o600); err != nil {
			t.Fatal(err)
		}
		checkImageOrMessage(t, "oci:"+dir)
		checkImageOrMessage(t, "oci:"+dir+"@"+digest)
	})
}

// checkImageOrMessage reads an image. Its layers have the digests that it says, or
// there is an error fit to be read.
func checkImageOrMessage(t *testing.T, ref string) {
	t.Helper()
	img, err := Puller{MaxArchive: 1 << 20}.Image(t.Context(), ref)
	if err != nil {
		checkMessage(t, err)
		return
	}
	for _, l := range img.Layers {
		want := l.DiffID
		rc, err := l.Open(t.Context(), nil)
		if err != nil {
			checkMessage(t, err)
			continue
		}
		got, _, err := v1.SHA256(io.LimitReader(rc, 8<<20))
		if err == nil && want.Algorithm == "sha256" && got != want {
			if n, _ := rc.Read(make([]byte, 1)); n == 0 { // it was read to its end
				t.Errorf("a layer with the digest %s passed as %s", got, want)
			}
		}
		rc.Close()
	}
}

// checkMessage checks that an error could be shown to a person.
func checkMessage(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	odd := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	if len(text) > 20_000 || strings.ContainsFunc(text, odd) {
		t.Errorf("%d bytes: %.500q", len(text), text)
	}
}

// FuzzDecompress decompresses whatever a layer may be.
func FuzzDecompress(f *testing.F) {
	for _, comp := range []compression.Compression{compression.GZip, compression.ZStd} {
		rc, err := layerOf(f, "a", comp).Compressed()
		if err != nil {
			f.Fatal(err)
		}
		whole, err := io.ReadAll(rc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(append([]byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x"), whole...))
		f.Add(whole[:len(whole)/2])
	}
	f.Fuzz(func(t *testing.T, layer []byte) {
		d, err := newDecompressor(bytes.NewReader(layer))
		if err != nil {
			return
		}
		defer d.release()
		if n, err := io.Copy(io.Discard, io.LimitReader(d, 4<<20)); n > 0 && n < 4<<20 && err == nil && !isCompressed(layer) && n != int64(len(layer)) {
			t.Errorf("%d of %d bytes came", n, len(layer))
		}
	})
}

// FuzzLogins reads files of credentials. Those of other registries stay where they are.
func FuzzLogins(f *testing.F) {
	f.Add([]byte(`{"auths":{"registry.example":{"auth":"YWRhOnNlY3JldA=="},"https://index.docker.io/v1/":{"username":"a","password":"b"}}}`))
	f.Add([]byte(`{"auths":{"other.example":{"auth":"YWRhOnNlY3JldA=="}},"credHelpers":{"registry.example":"none"},"credsStore":"none"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		t.Setenv("PATH", t.TempDir()) // no helpers
		file := filepath.Join(t.TempDir(), "auth.json")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		repo, err := name.NewRepository("registry.example/team/py")
		if err != nil {
			t.Fatal(err)
		}
		auth, err := (&logins{file: file}).find(t.Context(), repo)
		if err != nil {
			return
		}
		got, err := auth.Authorization()
		if err == nil && got.Username != "" && !bytes.Contains(content, []byte("registry.example")) && !bytes.Contains(content, []byte(`\`)) {
			t.Errorf("%+v is for another registry", got)
		}
	})
}

// FuzzAnswer is a registry that answers everything with one thing.
func FuzzAnswer(f *testing.F) {
	f.Add(401, `Bearer realm="https://auth.example/token",service="r"`, "application/json", `{"errors":[{"code":"DENIED","message":"no"}]}`)
	f.Add(200, "", "application/vnd.oci.image.manifest.v1+json", `{"schemaVersion":2,"config":{"digest":"sha256:00"},"layers":[]}`)
	f.Add(401, "Bearer reclm=\"https://auth\x0f.example\"", "", "")
	f.Add(206, "", "bytes 0-1/2", `{"token":"x"}`)
	f.Add(307, "https://other.example/", "", "")
	f.Add(307, "s://\xe8\xec\u0380", "", "")
	f.Fuzz(func(t *testing.T, status int, header, kind, body string) {
		if status < 200 || status > 599 || len(body) > 1<<20 {
			return
		}
		server := trip(func(req *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: status, Status: fmt.Sprint(status), Request: req, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
				Header: http.Header{"Www-Authenticate": {header}, "Location": {header}, "Content-Type": {kind}, "Content-Range": {kind}, "Docker-Content-Digest": {kind}},
			}, nil
		})
		img, err := Puller{Transport: server, Login: &Login{"ada", "secret"}, Backoff: time.Nanosecond}.Image(t.Context(), "registry.example/py:3")
		if err == nil {
			_, err = readImage(img)
		}
		if err != nil {
			checkMessage(t, err)
		}
	})
}
