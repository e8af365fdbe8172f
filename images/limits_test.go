package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archiveWith writes a tar archive of empty files.
func archiveWith(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, hdr := range headers {
		if err := w.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestListsOfArchivesAreBounded: their names stay in memory.
func TestListsOfArchivesAreBounded(t *testing.T) {
	const fits = "no OCI image layout"
	many := make([]tar.Header, maxArchiveFiles+1)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprint(i)}
		if i%2 == 0 {
			many[i].Typeflag, many[i].Linkname = tar.TypeSymlink, "x"
		}
	}
	long := strings.Repeat("x", maxArchiveName)
	for name, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"as many files":  {many[1:], fits},
		"one more":       {many, "has more than 20000 files"},
		"as long a name": {[]tar.Header{{Name: long}}, fits},
		"a longer name":  {[]tar.Header{{Name: long + "x"}}, "has a name of more than 1024 bytes"},
		"a link to it":   {[]tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: long + "x"}}, "has a name of more than 1024 bytes"},
		"as long a link": {[]tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: long}}, fits},
	} {
		if err := pullAll(Puller{}, "oci-archive:"+archiveWith(t, c.headers...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDocumentsOfLocalImagesAreBounded before they are decoded.
func TestDocumentsOfLocalImagesAreBounded(t *testing.T) {
	dir := layoutOf(t, nil)
	if err := os.Truncate(filepath.Join(dir, "index.json"), maxManifest+1); err != nil {
		t.Fatal(err)
	}
	if err := pullAll(Puller{}, "oci:"+dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`"index.json" has more than %d bytes`, maxManifest)) {
		t.Errorf("an index: %v", err)
	}
	b := &tarBlobs{parts: map[string]part{"config.json": {size: maxConfig + 1}}}
	if _, _, err := unnamedConfig(t.Context(), b, "config.json"); err == nil || !strings.Contains(err.Error(), "config.json has more than") {
		t.Errorf("a configuration: %v", err)
	}
}

// TestMessagesNameOnlySome of what an image or a user may give without end.
func TestMessagesNameOnlySome(t *testing.T) {
	if _, err := Parse(strings.Repeat("a", maxReference+1)); err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "more than the limit of") {
		t.Errorf("a long reference: %v", err)
	}
	if got, want := quoted(strings.Repeat("a", 501)), `"`+strings.Repeat("a", 500)+`"…`; got != want {
		t.Errorf("a long text: %s", got)
	}
	if got := quoted("a\x1b"); got != `"a\x1b"` {
		t.Errorf("a short text: %s", got)
	}
	names := strings.Split(strings.Repeat("a,", 20)+"b,c", ",")
	if got, want := printableNames(names), strings.Repeat("a, ", 20)+"and 2 more"; got != want {
		t.Errorf("many names: %s", got)
	}
	if got := printableNames(names[19:]); got != "a, b, c" {
		t.Errorf("few names: %s", got)
	}
}
