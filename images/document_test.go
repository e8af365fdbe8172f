package images

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// filled repeats a text between a head and a tail up to so many bytes.
func filled(head, repeated, tail string, size int) []byte {
	var b bytes.Buffer
	b.WriteString(head)
	for b.Len()+len(repeated)+len(tail) < size {
		b.WriteString(repeated)
	}
	b.WriteString(tail)
	return b.Bytes()
}

// shapes are texts in JSON of a size that take much more of it when they are decoded.
func shapes(size int) map[string][]byte {
	half := size / 2
	return map[string][]byte{
		"history":           filled(`{"history":[{}`, ",{}", "]}", size),
		"variables":         filled(`{"config":{"Env":[""`, `,""`, "]}}", size),
		"layers":            filled(`{"layers":[{}`, ",{}", "]}", size),
		"manifests":         filled(`{"manifests":[{}`, ",{}", "]}", size),
		"digests":           filled(`{"rootfs":{"diff_ids":[""`, `,""`, "]}}", size),
		"a list of images":  filled(`[{}`, ",{}", "]", size),
		"tags":              filled(`[{"RepoTags":[""`, `,""`, "]}]", size),
		"lists":             filled(`{"x":[[]`, ",[]", "]}", size),
		"members":           filled(`{"a":0`, `,"a":0`, "}", size),
		"annotations":       filled(`{"manifests":[{"annotations":{"a":""`, `,"b":""`, "}}]}", size),
		"a long text":       filled(`{"os":"`, "x", `"}`, size),
		"a long number":     filled(`{"config":{"size":`, "1", "}}", size),
		"deep lists":        filled(`{"x":`, "[", "", size),
		"deep objects":      filled(`{"x":`, `{"x":`, "", size),
		"deep in use":       append(filled("", `{"config":`, "", half), filled("", "}", "", half)...),
		"never ending":      filled(`{"history":[{}`, ",{}", "", size),
		"white space":       filled(`{`, " ", "}", size),
		"twins of a member": filled(`{"layers":[]`, `,"layers":[{"digest":"sha256:`+strings.Repeat("0", 64)+`"}]`, "}", size),
	}
}

// TestImageJSONTakesNoMoreMemoryThanItsBytes, whatever its shape.
//
//test:alone
func TestImageJSONTakesNoMoreMemoryThanItsBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads documents of many megabytes")
	}
	readers := map[string]func(text []byte) error{
		"manifest or index": func(text []byte) error {
			_, err := parseDocument(text)
			return err
		},
		"configuration": func(text []byte) error {
			_, err := readConfig(bytes.NewReader(text))
			return err
		},
		"manifest.json": func(text []byte) error {
			_, err := parseSaved(text)
			return err
		},
	}
	const size = 4 << 20
	for shape, text := range shapes(size) {
		for name, read := range readers {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(text)
			runtime.ReadMemStats(&after)
			// All that was allocated, also what is free again.
			if used := after.TotalAlloc - before.TotalAlloc; used > 6*size {
				t.Errorf("%s, %s: %d MiB for %d MiB", name, shape, used>>20, size>>20)
			}
			if err != nil {
				checkMessage(t, err)
			}
		}
	}
}

func TestListsOfImagesAreBounded(t *testing.T) {
	entry := `{"digest":"sha256:` + strings.Repeat("0", 64) + `"}`
	list := func(entry string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
	}
	for _, c := range []struct {
		name string
		read func(list string) error
		of   string
		most int
	}{
		{"layers", func(l string) error { _, err := parseDocument([]byte(`{"layers":` + l + `}`)); return err }, entry, 1000},
		{"manifests", func(l string) error { _, err := parseDocument([]byte(`{"manifests":` + l + `}`)); return err }, entry, 1000},
		{"config.Env", func(l string) error {
			_, err := readConfig(strings.NewReader(`{"config":{"Env":` + l + `}}`))
			return err
		}, `"a=b"`, 1000},
		{"rootfs.diff_ids", func(l string) error {
			_, err := readConfig(strings.NewReader(`{"rootfs":{"diff_ids":` + l + `}}`))
			return err
		}, `""`, 1000},
		{"RepoTags", func(l string) error { _, err := parseSaved([]byte(`[{"RepoTags":` + l + `}]`)); return err }, `"a:b"`, maxArchiveFiles},
		{"it", func(l string) error { _, err := parseSaved([]byte(l)); return err }, `{}`, 1000},
		{"it", func(l string) error { // the names of all images together
			_, err := parseSaved([]byte(`[{"RepoTags":` + l + `},{"Layers":["a"]}]`))
			return err
		}, `"a:b"`, maxArchiveFiles - 1},
	} {
		if err := c.read(list(c.of, c.most)); err != nil {
			t.Errorf("%s: %d are refused: %v", c.name, c.most, err)
		}
		if err := c.read(list(c.of, c.most+1)); err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), "more than the limit of") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestWhatIsNotInUseIsIgnored: histories are of any length and shape.
func TestWhatIsNotInUseIsIgnored(t *testing.T) {
	text := filled(`{"os":"linux","history":[{}`, `,{"x":[1,{"y":null}]},3`, `],"container_config":7,"config":{"Labels":3,"Env":["A=b"]},"rootfs":{"type":1,"diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`, 1<<20)
	c, err := readConfig(bytes.NewReader(text))
	if err != nil || c.OS != "linux" || len(c.Config.Env) != 1 || len(c.RootFS.DiffIDs) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = readConfig(strings.NewReader(`{"os":null,"config":null,"rootfs":null}`))
	if err != nil || c.platform != (platform{}) {
		t.Errorf("of nulls: got %+v, %v", c, err)
	}
}

func TestImageJSONThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "it is empty",
		"{":                              "it is not valid JSON",
		"{} {}":                          "it is not valid JSON",
		"[]":                             "it must be an object, not an array",
		`{"layers":{}}`:                  `"layers" must be an array, not an object`,
		`{"layers":[{"size":"1"}]}`:      `"layers.size" must be a number, not a string`,
		`{"layers":[{"size":1.5}]}`:      `"layers.size" must be a whole number`,
		`{"layers":[{"digest":"abc"}]}`:  `"layers.digest" is not a digest`,
		`{"layers":[{"digest":7}]}`:      `"layers.digest" must be a string, not a number`,
		`{"layers":[{}]}`:                "an entry has no digest",
		`{"config":[]}`:                  `"config" must be an object, not an array`,
		`{"mediaType":true}`:             `"mediaType" must be a string, not true or false`,
		`{"config":{"size":1` + "\x00}}": "it is not valid JSON",
	} {
		if _, err := parseDocument([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// oneBlob are blobs that are all the same.
type oneBlob struct{ io.Reader }

func (b oneBlob) open(string) (io.ReadCloser, error) { return io.NopCloser(b.Reader), nil }

// A endingReader cancels after its first bytes.
type endingReader struct {
	cancel func()
	text   string
}

func (r endingReader) Read(p []byte) (int, error) {
	r.cancel()
	return copy(p, r.text), nil
}

func TestReadingAConfigurationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	h := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}
	in := oneBlob{endingReader{func() { cancel(stopped) }, strings.Repeat(" ", 512)}}
	if _, err := verifiedConfig(ctx, in, h, 1<<60); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// TestHugeConfigurationsAreRefusedAsContent: what a registry or a layout has must still
// be what its digest says.
func TestHugeConfigurationsAreRefusedAsContent(t *testing.T) {
	dir := t.TempDir()
	blobs := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	text := filled(`{"history":[{}`, ",{}", "", 1<<20)
	h := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("1", 64)}
	if err := os.WriteFile(filepath.Join(blobs, h.Hex), text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := verifiedConfig(t.Context(), dirBlobs(dir), h, int64(len(text)))
	if !errors.Is(err, errCorrupt) {
		t.Errorf("got %v", err)
	}
}

// TestRegistryOfHugeDocuments sends as much as is read of a manifest.
//
//test:alone
func TestRegistryOfHugeDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads documents of many megabytes")
	}
	for shape, text := range shapes(maxManifest) {
		registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				w.Header().Set("Content-Type", string(types.OCIImageIndex))
				_, _ = w.Write(text)
			}
		}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := pullAll(Puller{}, strings.TrimPrefix(registry.URL, "http://")+"/py:3")
		runtime.ReadMemStats(&after)
		registry.Close()
		if err == nil {
			t.Errorf("%s: no error", shape)
		} else {
			checkMessage(t, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 12*maxManifest {
			t.Errorf("%s: %d MiB", shape, used>>20)
		}
	}
}
