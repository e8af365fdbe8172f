package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func TestParse(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, c := range []struct {
		ref  string
		kind Kind
		name string
		path string
		tag  string
	}{
		{"python", Registry, "index.docker.io/library/python:latest", "", ""},
		{"python:3.14-slim", Registry, "index.docker.io/library/python:3.14-slim", "", ""},
		{"docker.io/library/python:3.14-slim", Registry, "index.docker.io/library/python:3.14-slim", "", ""},
		{"docker://python:3.14-slim", Registry, "index.docker.io/library/python:3.14-slim", "", ""},
		{"team/tool:1", Registry, "index.docker.io/team/tool:1", "", ""},
		{"localhost:5000/py:3", Registry, "localhost:5000/py:3", "", ""},
		{"ghcr.io/a/b@" + digest, Registry, "ghcr.io/a/b@" + digest, "", ""},
		{"oci:/srv/py", Layout, "oci:/srv/py", "/srv/py", ""},
		{"oci:/srv/../srv/py:3.14", Layout, "oci:/srv/py:3.14", "/srv/py", "3.14"},
		{"oci:/srv/py@" + digest, Layout, "oci:/srv/py@" + digest, "/srv/py", ""},
		{"oci-archive:/a@b.tar@" + digest, OCIArchive, "oci-archive:/a@b.tar@" + digest, "/a@b.tar", ""},
		{"oci:py", Layout, "oci:" + filepath.Join(cwd, "py"), filepath.Join(cwd, "py"), ""},
		{"oci-archive:/a.tar:x", OCIArchive, "oci-archive:/a.tar:x", "/a.tar", "x"},
		{"docker-archive:/a.tar:docker.io/library/python:3", DockerArchive, "docker-archive:/a.tar:docker.io/library/python:3", "/a.tar", "docker.io/library/python:3"},
		{"host", Host, "host", "", ""},
	} {
		r, err := Parse(c.ref)
		if err != nil {
			t.Errorf("Parse(%q): %v", c.ref, err)
			continue
		}
		if r.Kind != c.kind || r.Name != c.name || r.Path != c.path || r.Tag != c.tag || r.Digest != "" != (r.Kind != Registry && strings.HasSuffix(c.ref, digest)) {
			t.Errorf("Parse(%q) = %+v", c.ref, r)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, ref := range map[string]string{
		"empty":    "",
		"too long": strings.Repeat("a", 6000),
		"NUL":      "oci:/a\x00b",
		"no path":  "oci:",
		"no file":  "docker-archive::tag",
		"space":    "python 3",

		"short digest of a layout": "oci:/a@sha256:abc",
		"tag and digest":           "oci:/a:3@sha256:" + strings.Repeat("a", 64),
	} {
		if r, err := Parse(ref); err == nil {
			t.Errorf("%s: Parse(%.40q) = %+v, want an error", name, ref, r)
		}
	}
}

// TestParseSaysWhatIsWrong in the user's words.
func TestParseSaysWhatIsWrong(t *testing.T) {
	const form = "it is not NAME[:TAG] or NAME@sha256:DIGEST, such as python:3.14-slim"
	for ref, want := range map[string]string{
		"Python:3":           "names of images are in lower case: python:3",
		"ghcr.io/Team/py":    "names of images are in lower case: ghcr.io/team/py",
		"python:":            form,
		"python@sha256:abc":  form,
		"python:a b":         form,
		"https://ghcr.io/py": form,
	} {
		if _, err := Parse(ref); err == nil || err.Error() != fmt.Sprintf("image reference %q: %s", ref, want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestLocalImagesThatAreNotThere are errors in plain words.
func TestLocalImagesThatAreNotThere(t *testing.T) {
	empty := t.TempDir()
	text := filepath.Join(empty, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no tar ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(empty, "other.tar")
	if err := os.WriteFile(other, tarOf(t, "a", "b"), 0o600); err != nil {
		t.Fatal(err)
	}
	badJSON := filepath.Join(empty, "bad")
	if err := errors.Join(os.Mkdir(badJSON, 0o700), os.WriteFile(filepath.Join(badJSON, "index.json"), []byte("{nope"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"oci:" + badJSON:                    "reading index: it is not valid JSON",
		"oci:" + empty + "/none":            `"` + empty + `/none": no such file or folder`,
		"oci-archive:" + empty + "/none":    `"` + empty + `/none": no such file or folder`,
		"docker-archive:" + empty + "/none": `"` + empty + `/none": no such file or folder`,
		"oci:" + text:                       "open " + text + ": not a directory",
		"oci:" + empty:                      "this is no OCI image layout: it has no index.json",
		"oci-archive:" + empty:              `"` + empty + `" is not a regular file`,
		"oci-archive:" + text:               "it is not a tar archive, or a damaged one",
		"docker-archive:" + text:            "it is not a tar archive, or a damaged one",
		"docker-archive:" + other:           "this is no docker archive: it has no manifest.json",
	} {
		if err := pullAll(Puller{}, ref); err == nil || err.Error() != fmt.Sprintf("reading image %q: %s", ref, want) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// sources are the ways to one image.
func sources(t *testing.T, img v1.Image) map[string]string {
	host := serve(t, nil)
	push(t, host+"/py:3", img)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := layoutOf(t, map[string]v1.Image{"3": img})
	return map[string]string{
		"registry tag":            host + "/py:3",
		"registry digest":         host + "/py@" + digest.String(),
		"layout":                  "oci:" + dir,
		"layout with tag":         "oci:" + dir + ":3",
		"oci archive":             "oci-archive:" + archiveOf(t, dir),
		"layout with digest":      "oci:" + dir + "@" + digest.String(),
		"oci archive with digest": "oci-archive:" + archiveOf(t, dir) + "@" + digest.String(),
		"oci archive, gzip":       "oci-archive:" + compressed(t, archiveOf(t, dir), compression.GZip),
		"docker archive, gzip":    "docker-archive:" + compressed(t, savedOf(t, "py:3", img), compression.GZip),
		"docker archive, zstd":    "docker-archive:" + compressed(t, savedOf(t, "py:3", img), compression.ZStd),
		"docker archive":          "docker-archive:" + savedOf(t, "py:3", img),
		"docker archive with ref": "docker-archive:" + savedOf(t, "py:3", img) + ":py:3",
	}
}

func TestImageReadsEverySourceAndCompression(t *testing.T) {
	for _, comp := range []compression.Compression{compression.GZip, compression.ZStd, compression.None} {
		img := imageOf(t, hostPlatform(), layerOf(t, "a", comp), layerOf(t, "b", comp))
		want, err := readAll(img)
		if err != nil {
			t.Fatal(err)
		}
		for name, ref := range sources(t, img) {
			got, err := Puller{}.Image(context.Background(), ref)
			if err != nil {
				t.Errorf("%s, %s: %v", name, comp, err)
				continue
			}
			if text, err := readImage(got); err != nil || text != want {
				t.Errorf("%s, %s: read %d bytes, want %d: %v", name, comp, len(text), len(want), err)
			}
		}
	}
}

func TestImageReadsDockerSchema2(t *testing.T) {
	img := mutate.MediaType(hostImage(t), types.DockerManifestSchema2)
	img = mutate.ConfigMediaType(img, types.DockerConfigJSON)
	host := serve(t, nil)
	push(t, host+"/py:3", img)
	if err := pullAll(Puller{}, host+"/py:3"); err != nil {
		t.Error(err)
	}
}

func TestOpenCountsCompressedBytes(t *testing.T) {
	img, err := Puller{}.Image(context.Background(), "oci:"+layoutOf(t, map[string]v1.Image{"3": hostImage(t)}))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	rc, err := img.Layers[0].Open(t.Context(), func(n int) { count += n })
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if _, err := io.Copy(io.Discard, rc); err != nil {
		t.Fatal(err)
	}
	if int64(count) != img.Layers[0].Size {
		t.Errorf("counted %d bytes of %d", count, img.Layers[0].Size)
	}
}

// liar says something else than its inner image.
type liar struct {
	v1.Image
	manifest func(*v1.Manifest)
	config   func(*v1.ConfigFile)
}

func (l liar) RawConfigFile() ([]byte, error) {
	c, err := l.Image.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	if l.config != nil {
		l.config(c)
	}
	return json.Marshal(c)
}

func (l liar) ConfigFile() (*v1.ConfigFile, error) { return partial.ConfigFile(l) }
func (l liar) ConfigName() (v1.Hash, error)        { return partial.ConfigName(l) }
func (l liar) Digest() (v1.Hash, error)            { return partial.Digest(l) }
func (l liar) Size() (int64, error)                { return partial.Size(l) }

func (l liar) Manifest() (*v1.Manifest, error) {
	m, err := l.Image.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	raw, err := l.RawConfigFile()
	if err != nil {
		return nil, err
	}
	m.Config.Size = int64(len(raw))
	if m.Config.Digest, err = l.ConfigName(); err != nil {
		return nil, err
	}
	if l.manifest != nil {
		l.manifest(m)
	}
	return m, nil
}

func (l liar) RawManifest() ([]byte, error) {
	m, err := l.Manifest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func TestImageRefusesLyingImages(t *testing.T) {
	for name, c := range map[string]struct {
		lie  liar
		want string
	}{
		"wrong diff id": {liar{config: func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0] = c.RootFS.DiffIDs[1] }}, "corrupt"},
		"missing diff id": {
			liar{config: func(c *v1.ConfigFile) { c.RootFS.DiffIDs = c.RootFS.DiffIDs[:1] }},
			"2 layers but its configuration names 1",
		},
		"wrong platform":  {liar{config: func(c *v1.ConfigFile) { c.Architecture = "s390x" }}, "made for linux/s390x"},
		"negative layer":  {liar{manifest: func(m *v1.Manifest) { m.Layers[0].Size = -1 }}, "size -1"},
		"endless config":  {liar{manifest: func(m *v1.Manifest) { m.Config.Size = 1 << 40 }}, "beyond the limit"},
		"sizeless config": {liar{manifest: func(m *v1.Manifest) { m.Config.Size = -1 }}, "beyond the limit"},
		"longer config":   {liar{manifest: func(m *v1.Manifest) { m.Config.Size-- }}, "corrupt"},
		"chart":           {liar{manifest: func(m *v1.Manifest) { m.Config.MediaType = "application/vnd.cncf.helm.config.v1+json" }}, "an artifact of the type application/vnd.cncf.helm.config.v1+json, not an image"},
		"artifact": {liar{manifest: func(m *v1.Manifest) {
			m.Config.MediaType, m.ArtifactType = "application/vnd.oci.empty.v1+json", "application/vnd.example+\x1b[2J"
		}}, `an artifact of the type "application/vnd.example+\x1b[2J"`},
		"artifact of OCI 1.1.0-rc": {liar{manifest: func(m *v1.Manifest) { m.MediaType = "application/vnd.oci.artifact.manifest.v1+json" }}, "an artifact"},
		"short layer":              {liar{manifest: func(m *v1.Manifest) { m.Layers[0].Size-- }}, "corrupt"},
		"long layer":               {liar{manifest: func(m *v1.Manifest) { m.Layers[0].Size++ }}, "corrupt"},
		"flood of layers": {liar{manifest: func(m *v1.Manifest) {
			for range 2000 {
				m.Layers = append(m.Layers, m.Layers[0])
			}
		}}, "more than the limit of 1000"},
	} {
		c.lie.Image = hostImage(t)
		dir := layoutOf(t, map[string]v1.Image{"3": c.lie.Image})
		rewrite(t, dir, c.lie)
		err := pullAll(Puller{}, "oci:"+dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: a bad image counts as an unavailable registry: %v", name, err)
		}
	}
}

// rewrite puts another manifest and configuration into a layout.
func rewrite(t *testing.T, dir string, img v1.Image) {
	t.Helper()
	raw, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := img.Digest()
	name, _ := img.ConfigName()
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, Manifests: []v1.Descriptor{
		{MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(raw))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string][]byte{blobName(digest): raw, blobName(name): config, "index.json": index} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImageRefusesEmptyImage(t *testing.T) {
	dir := layoutOf(t, map[string]v1.Image{"3": mutate.MediaType(empty.Image, types.OCIManifestSchema1)})
	if err := pullAll(Puller{}, "oci:"+dir); err == nil || !strings.Contains(err.Error(), "no layers") {
		t.Errorf("got %v", err)
	}
}

func TestLayoutWithSeveralImages(t *testing.T) {
	a := imageOf(t, hostPlatform(), layerOf(t, "a", compression.GZip))
	b := imageOf(t, hostPlatform(), layerOf(t, "b", compression.GZip))
	dir := layoutOf(t, map[string]v1.Image{"3.14": a, "3.11": b})
	got, err := Puller{}.Image(context.Background(), "oci:"+dir+":3.11")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := b.Digest()
	if d := got.Digest; d != want.String() {
		t.Errorf("got %s, want %s", d, want)
	}
	for ref, want := range map[string]string{
		"oci:" + dir:          "several images",
		"oci:" + dir + ":2.7": "no image with the tag \"2.7\"",
		"oci:" + dir + "x":    "no such file",

		"oci:" + dir + "@sha256:" + strings.Repeat("0", 64): "no image with the digest sha256:000",
		"oci:" + filepath.Dir(dir):                          "no OCI image layout",
		"oci-archive:" + dir:                                "not a regular file",
		"docker-archive:" + dir + "/no":                     "no such file",
	} {
		if err := pullAll(Puller{}, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		}
	}
}

// TestLayoutByTheDigestOfAnIndex: which of its images is chosen as anywhere else.
func TestLayoutByTheDigestOfAnIndex(t *testing.T) {
	mine, other := hostImage(t), imageOf(t, v1.Platform{OS: "linux", Architecture: "s390x"}, layerOf(t, "b", compression.GZip))
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}},
		mutate.IndexAddendum{Add: mine, Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}})
	dir := filepath.Join(t.TempDir(), "layout")
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lay.AppendIndex(index), lay.AppendImage(other)); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := Puller{}.Image(context.Background(), "oci:"+dir+"@"+digest.String())
	if err != nil {
		t.Fatal(err)
	}
	want, _ := mine.Digest()
	if got := img.Digest; got != want.String() {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLayoutDoesNotLeadOutside(t *testing.T) {
	img := hostImage(t)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, replace := range map[string]func(blob string) error{
		"symlink out": func(blob string) error {
			moved := filepath.Join(t.TempDir(), "blob")
			return errors.Join(os.Rename(blob, moved), os.Symlink(moved, blob))
		},
		"fifo":      func(blob string) error { return errors.Join(os.Remove(blob), syscall.Mkfifo(blob, 0o600)) },
		"directory": func(blob string) error { return errors.Join(os.Remove(blob), os.Mkdir(blob, 0o700)) },
	} {
		dir := layoutOf(t, map[string]v1.Image{"3": img})
		if err := replace(filepath.Join(dir, blobName(m.Layers[0].Digest))); err != nil {
			t.Fatal(err)
		}
		if err := pullAll(Puller{}, "oci:"+dir); err == nil {
			t.Errorf("%s: the blob was read", name)
		}
	}
}

func TestImageSaysThatHostIsNoImage(t *testing.T) {
	if err := pullAll(Puller{}, "host"); err == nil {
		t.Error("host was pulled")
	}
}
