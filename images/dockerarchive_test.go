package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// savedTexts writes an archive with a manifest.json and a config.json.
func savedTexts(t *testing.T, manifest, config string) string {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600),
		os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return archiveOf(t, dir)
}

func TestDockerArchiveThatIsDamaged(t *testing.T) {
	const one = `[{"Config":"config.json","RepoTags":["a:1"],"Layers":["layer.tar"]}]`
	for name, c := range map[string]struct{ manifest, config, want string }{
		"manifest":         {"[", "", "reading manifest.json: it is not valid JSON"},
		"no configuration": {`[{"Config":"gone.json","Layers":["layer.tar"]}]`, "", "reading configuration: open gone.json: file does not exist"},
		"configuration":    {one, "{", "reading configuration: it is not valid JSON"},
		"other layers":     {one, "{}", "the image has 1 layers but its configuration names 0"},
		"no layers":        {`[{"Config":"config.json"}]`, "{}", "the image has no layers"},
	} {
		ref := "docker-archive:" + savedTexts(t, c.manifest, c.config)
		if err := pullAll(Puller{}, ref); err == nil || err.Error() != fmt.Sprintf("reading image %q: %s", ref, c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	loop := archiveWith(t, tar.Header{Name: "manifest.json", Typeflag: tar.TypeSymlink, Linkname: "manifest.json"})
	if err := pullAll(Puller{}, "docker-archive:"+loop); err == nil || !strings.Contains(err.Error(), `: too many links to "manifest.json"`) {
		t.Errorf("a link to itself: %v", err)
	}
}

// TestNamesOfAllImagesOfAnArchiveAreBounded together.
func TestNamesOfAllImagesOfAnArchiveAreBounded(t *testing.T) {
	image := func(n int) string { return `{"RepoTags":["a"` + strings.Repeat(`,"a"`, n-1) + `]}` }
	const half = maxArchiveFiles / 2
	if _, err := parseSaved([]byte("[" + image(half) + "," + image(half) + "]")); err != nil {
		t.Errorf("as many: %v", err)
	}
	_, err := parseSaved([]byte("[" + image(half) + "," + image(half+1) + "]"))
	if err == nil || !strings.Contains(err.Error(), "more than the limit of 20000 entries") {
		t.Errorf("one more: %v", err)
	}
}

// TestDigestOfASavedImage names it in the store: it stays as it is, and covers configuration and layers.
func TestDigestOfASavedImage(t *testing.T) {
	layer := sha256.Sum256([]byte("layer"))
	config := v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, Config: v1.Config{Env: []string{"A=b"}},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: fmt.Sprintf("%x", layer)}}},
	}
	file := savedTar(t, config, []string{"layer.tar"}, []tar.Header{{Name: "layer.tar"}}, map[string][]byte{"layer.tar": []byte("layer")})
	img, err := Puller{Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}.Image(t.Context(), "docker-archive:"+file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
		`"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":%d,"digest":"sha256:%x"},`+
		`"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar","size":5,"digest":"sha256:%x"}]}`,
		len(text), sha256.Sum256(text), layer)
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(manifest))); img.Digest != want {
		t.Errorf("got %s, want that of %s", img.Digest, manifest)
	}
	if err := pullAll(Puller{}, "docker-archive:"+file+":py:3"); err == nil || !strings.Contains(err.Error(), `no image "py:3"; it has none with a name`) {
		t.Errorf("by a name: %v", err)
	}
}
