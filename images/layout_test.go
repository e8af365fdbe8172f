package images

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/toolcell/toolcell/internal/ostest"
)

// indexText writes an index of these entries, with the members before them.
func indexText(members string, entries ...string) string {
	return fmt.Sprintf(`{%s"manifests":[%s]}`, members, strings.Join(entries, ","))
}

// entryText writes an entry of an index, with further members.
func entryText(kind, digest, members string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q%s}`, kind, digest, members)
}

// addBlob adds a blob to a layout and returns its digest.
func addBlob(t *testing.T, dir, text string) string {
	t.Helper()
	hex := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if err := os.WriteFile(filepath.Join(dir, "blobs/sha256", hex), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "sha256:" + hex
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

// TestEntriesOfLayouts: what the index of a layout says, and what is read then.
func TestEntriesOfLayouts(t *testing.T) {
	const (
		manifest = "application/vnd.oci.image.manifest.v1+json"
		index    = "application/vnd.oci.image.index.v1+json"
	)
	tagged := func(tag string) string {
		return `,"annotations":{"org.opencontainers.image.ref.name":"` + tag + `"}`
	}
	img := hostImage(t)
	image := digestOf(t, img)
	dir := layoutOf(t, map[string]v1.Image{"3": img})
	inner := addBlob(t, dir, indexText(`"mediaType":"`+index+`",`, entryText(manifest, image, "")))
	nameless := addBlob(t, dir, indexText("", entryText(manifest, image, "")))
	changed := filepath.Join(dir, "blobs/sha256", strings.Repeat("1", 64))
	if raw, err := img.RawManifest(); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(changed, append(raw, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		index string
		pick  string
		want  string // of the error
	}{
		"a tag of an index":          {indexText("", entryText(index, inner, tagged("3"))), ":3", ""},
		"a digest of an index":       {indexText(""), "@" + inner, ""},
		"an index that says nothing": {indexText(""), "@" + nameless, ""},
		"the end of a reference":     {indexText("", entryText(manifest, image, tagged("docker.io/team/py:3"))), ":3", ""},
		"the end of a tag":           {indexText("", entryText(manifest, image, tagged("py-3"))), ":3", `no image with the tag "3"; it has py-3`},
		"no entry":                   {indexText(""), "", "the layout has no images"},
		"no entry, and a tag":        {indexText(""), ":3", "the layout has no images"},
		"something else": {
			indexText("", entryText("application/vnd.example", image, "")), "",
			image + ` is a "application/vnd.example", not an image`,
		},
		"another platform": {
			indexText("", entryText(manifest, image, `,"platform":{"os":"linux","architecture":"s390x"}`)), "",
			"; it has linux/s390x",
		},
		"a manifest that was changed": {indexText("", entryText(manifest, "sha256:"+filepath.Base(changed), "")), "", "corrupt"},
		"a digest of a changed one":   {indexText(""), "@sha256:" + filepath.Base(changed), "corrupt"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(c.index), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Puller{}.Image(t.Context(), "oci:"+dir+c.pick)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.Digest != image:
			t.Errorf("%s: got %s, want %s", name, got.Digest, image)
		}
	}
}

func TestLayoutThatCannotBeRead(t *testing.T) {
	if _, err := fromLayout(oneBlob{iotest.ErrReader(syscall.EIO)}, pick{}, hostPlatform()); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

// TestFilesOfLayoutsAreClosed: a server reads many in its life.
func TestFilesOfLayoutsAreClosed(t *testing.T) {
	img := imageOf(t, hostPlatform(), layerOf(t, "a", compression.GZip))
	dir := layoutOf(t, map[string]v1.Image{"3": img})
	got, err := Puller{}.Image(t.Context(), "oci:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if left := ostest.OpenFiles(t, dir); len(left) > 0 {
		t.Errorf("an image that was opened: %q", left)
	}
	in, err := got.Layers[0].Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, in, 10); err != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if left := ostest.OpenFiles(t, dir); len(left) > 0 {
		t.Errorf("a layer that was closed: %q", left)
	}
	blob := filepath.Join(dir, blobName(got.Layers[0].Digest))
	if err := errors.Join(os.Remove(blob), syscall.Mkfifo(blob, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := got.Layers[0].Open(t.Context(), nil); err == nil {
		t.Error("a pipe was read")
	}
	if left := ostest.OpenFiles(t, dir); len(left) > 0 {
		t.Errorf("a pipe that was refused: %q", left)
	}
}
