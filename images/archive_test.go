package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/toolcell/toolcell/internal/ostest"
)

func TestDockerArchiveWithSeveralImages(t *testing.T) {
	a := imageOf(t, hostPlatform(), layerOf(t, "a", compression.GZip))
	b := imageOf(t, hostPlatform(), layerOf(t, "b", compression.GZip))
	file := filepath.Join(t.TempDir(), "two.tar")
	tagA, _ := name.NewTag("a:1")
	tagB, _ := name.NewTag("b:1")
	if err := tarball.MultiWriteToFile(file, map[name.Tag]v1.Image{tagA: a, tagB: b}); err != nil {
		t.Fatal(err)
	}
	img, err := Puller{}.Image(context.Background(), "docker-archive:"+file+":docker.io/library/b:1")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := readAll(b)
	if got, err := readImage(img); err != nil || got != want {
		t.Errorf("read %d bytes, want %d: %v", len(got), len(want), err)
	}
	for ref, want := range map[string]string{"": "2 images", ":c:1": "no image \"c:1\"", ":C:1": "can only contain the characters"} {
		if err := pullAll(Puller{}, "docker-archive:"+file+ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", ref, err, want)
		} else if text := err.Error(); ref != ":C:1" && (!strings.Contains(text, "a:1") || !strings.Contains(text, "b:1")) {
			t.Errorf("%q: %v does not name the images", ref, err)
		}
	}
}

// savedTar writes a docker archive of plain layers, some of them as links.
func savedTar(t *testing.T, config v1.ConfigFile, layers []string, entries []tar.Header, bodies map[string][]byte) string {
	t.Helper()
	rawConfig, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]savedImage{{Config: "config.json", Layers: layers}})
	if err != nil {
		t.Fatal(err)
	}
	bodies["config.json"], bodies["manifest.json"] = rawConfig, manifest
	entries = append(entries, tar.Header{Name: "config.json"}, tar.Header{Name: "manifest.json"})
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, hdr := range entries {
		hdr.Size, hdr.Mode = int64(len(bodies[hdr.Name])), 0o644
		if err := w.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bodies[hdr.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "saved.tar")
	if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDockerArchiveFollowsItsLinks(t *testing.T) {
	body := tarOf(t, "a", content)
	diffID, _, err := v1.SHA256(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	config := v1.ConfigFile{OS: "linux", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diffID, diffID}}}
	entries := []tar.Header{
		{Name: "one/layer.tar"},
		{Name: "two/layer.tar", Typeflag: tar.TypeSymlink, Linkname: "../one/layer.tar"},
		{Name: "three/layer.tar", Typeflag: tar.TypeLink, Linkname: "one/layer.tar"},
		{Name: "loop", Typeflag: tar.TypeSymlink, Linkname: "loop"},
	}
	bodies := func() map[string][]byte { return map[string][]byte{"one/layer.tar": body} }
	for _, second := range []string{"two/layer.tar", "three/layer.tar", "./one/layer.tar"} {
		if err := pullAll(Puller{}, "docker-archive:"+savedTar(t, config, []string{"one/layer.tar", second}, entries, bodies())); err != nil {
			t.Errorf("%s: %v", second, err)
		}
	}
	if err := pullAll(Puller{}, "docker-archive:"+savedTar(t, config, []string{"loop", "loop"}, entries, bodies())); err == nil {
		t.Error("a link to itself was read")
	}
	if err := pullAll(Puller{}, "docker-archive:"+savedTar(t, config, []string{"one/layer.tar"}, entries, bodies())); err == nil {
		t.Error("an archive with a layer too few was read")
	}
	if err := pullAll(Puller{}, "docker-archive:"+savedTar(t, config, []string{"one/layer.tar", "../../etc/passwd"}, entries, bodies())); err == nil {
		t.Error("a layer outside of the archive was read")
	}
}

// compressed compresses a file into another.
func compressed(t testing.TB, file string, comp compression.Compression) string {
	t.Helper()
	plain, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := io.WriteCloser(gzip.NewWriter(&out))
	if comp == compression.ZStd {
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.Write(plain)
	name := filepath.Join(t.TempDir(), "compressed")
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// gzipped compresses a text in memory.
func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchiveRefusesWhatIsNone(t *testing.T) {
	whole := tarOf(t, "a", "b")
	checksum := gzipped(t, whole)
	checksum[len(checksum)-5] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":     {nil, "no OCI image layout"},
		"text":      {[]byte(content), "it is not a tar archive"},
		"other tar": {tarOf(t, "a", "b"), "no OCI image layout"},
		"xz":        {[]byte("\xfd7zXZ\x00 and so on"), "compressed with xz"},
		"bzip2":     {[]byte("BZh91AY&SY and so on"), "compressed with bzip2"},
		"cut gzip":  {[]byte("\x1f\x8b\x08"), "corrupt"},
		"cut tar":   {whole[:300], "it is not a tar archive, or a damaged one"},
		"text.gz":   {gzipped(t, []byte(content)), "it is not a tar archive"},
		// Of a whole archive, only the sum at its end is wrong.
		"wrong checksum": {checksum, "decompressing archive: content is corrupt"},
		"long pax":       {longPAX(t), "reading archive: archive/tar: header field too long"},
	} {
		file := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(file, c.content, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := pullAll(Puller{}, "oci-archive:"+file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// longPAX is a tar archive that begins with two megabytes of extended attributes.
func longPAX(t *testing.T) []byte {
	t.Helper()
	b := tarOf(t, "a", strings.Repeat("x", 2<<20))
	const kind, sum = 156, 148 // in a header of POSIX ustar
	b[kind] = tar.TypeXHeader
	copy(b[sum:], "        ")
	total := 0
	for _, c := range b[:512] {
		total += int(c)
	}
	copy(b[sum:], fmt.Sprintf("%06o\x00 ", total))
	return b
}

// TestCompressedArchiveIsBounded, and leaves nothing behind.
func TestCompressedArchiveIsBounded(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	file := compressed(t, savedOf(t, "py:3", hostImage(t)), compression.GZip)
	if err := pullAll(Puller{MaxArchive: 1000}, "docker-archive:"+file); err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_SIZE") {
		t.Errorf("got %v", err)
	}
	if open := ostest.OpenFiles(t, temp+"/"); len(open) > 0 {
		t.Errorf("%v are open", open)
	}
	if err := pullAll(Puller{}, "docker-archive:"+file); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(temp + "/*"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// corrupt changes one byte in the middle of each place where old stands.
func corrupt(t *testing.T, file string, old []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, old)
	if at < 0 {
		t.Fatalf("%s does not hold the blob", file)
	}
	b[at+len(old)/2] ^= 1
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLocalSourcesRefuseCorruptBlobs(t *testing.T) {
	for _, comp := range []compression.Compression{compression.GZip, compression.ZStd, compression.None} {
		img := imageOf(t, hostPlatform(), layerOf(t, "a", comp))
		m, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		dir := layoutOf(t, map[string]v1.Image{"3": img})
		blob, err := os.ReadFile(filepath.Join(dir, blobName(m.Layers[0].Digest)))
		if err != nil {
			t.Fatal(err)
		}
		archive, saved := archiveOf(t, dir), savedOf(t, "py:3", img)
		config := filepath.Join(layoutOf(t, map[string]v1.Image{"3": img}), blobName(m.Config.Digest))
		rawConfig, err := img.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		for ref, b := range map[string]struct {
			file string
			blob []byte
		}{
			"oci:" + dir:              {filepath.Join(dir, blobName(m.Layers[0].Digest)), blob},
			"oci-archive:" + archive:  {archive, blob},
			"docker-archive:" + saved: {saved, blob},
			"oci:" + filepath.Dir(filepath.Dir(filepath.Dir(config))): {config, rawConfig},
		} {
			if err := pullAll(Puller{}, ref); err != nil {
				t.Fatalf("%s: %v", ref, err)
			}
			corrupt(t, b.file, b.blob)
			if err := pullAll(Puller{}, ref); err == nil {
				t.Errorf("%s, %s: a corrupt blob was taken", ref, comp)
			}
		}
	}
}

func TestLayoutRefusesTruncatedAndLongBlobs(t *testing.T) {
	for _, comp := range []compression.Compression{compression.GZip, compression.ZStd, compression.None} {
		img := imageOf(t, hostPlatform(), layerOf(t, "a", comp))
		m, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func([]byte) []byte{
			"truncated":        func(b []byte) []byte { return b[:len(b)/2] },
			"one byte short":   func(b []byte) []byte { return b[:len(b)-1] },
			"empty":            func([]byte) []byte { return nil },
			"one byte long":    func(b []byte) []byte { return append(b, 0) },
			"zeros at the end": func(b []byte) []byte { return append(b, make([]byte, 4096)...) },
		} {
			dir := layoutOf(t, map[string]v1.Image{"3": img})
			file := filepath.Join(dir, blobName(m.Layers[0].Digest))
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, change(b), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := pullAll(Puller{}, "oci:"+dir); err == nil {
				t.Errorf("%s, %s: the blob was taken", name, comp)
			}
		}
	}
}
