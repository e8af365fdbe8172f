package packages

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
)

// rewritten returns a wheel in which the headers of its files are changed, and nothing else.
func rewritten(t *testing.T, wheel []byte, change func(h *zip.FileHeader)) []byte {
	t.Helper()
	old, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range old.File {
		content, err := e.OpenRaw()
		if err != nil {
			t.Fatal(err)
		}
		h := e.FileHeader
		change(&h)
		w, err := z.CreateRaw(&h)
		if err == nil {
			_, err = io.Copy(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUnpackRefusesHeaders that promise something else than what is there.
func TestUnpackRefusesHeaders(t *testing.T) {
	wheel := makeWheel(t, "a", wheelFile{name: "a.py", content: "x"}, wheelFile{name: "a-1.0.dist-info/RECORD.jws", content: "{}", unlisted: true})
	for name, c := range map[string]struct {
		change     func(h *zip.FileHeader)
		file, want string
	}{
		"encrypted":         {func(h *zip.FileHeader) { h.Flags |= 1 }, "a.py", `"a.py" is encrypted`},
		"unknown packing":   {func(h *zip.FileHeader) { h.Method = 99 }, "a.py", "unsupported compression algorithm"},
		"largest size":      {func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 63 }, "a.py", "it is too large"},
		"wrong CRC, hashed": {func(h *zip.FileHeader) { h.CRC32++ }, "a.py", "checksum error"},
		"wrong CRC":         {func(h *zip.FileHeader) { h.CRC32++ }, "a-1.0.dist-info/RECORD.jws", "checksum error"},
		"no RECORD":         {func(h *zip.FileHeader) { h.Name = "a-1.0.dist-info/RECORDS" }, "a-1.0.dist-info/RECORD", "it has no RECORD"},
	} {
		changed := rewritten(t, wheel, func(h *zip.FileHeader) {
			if h.Name == c.file {
				c.change(h)
			}
		})
		if _, _, err := unpack(t, changed, 1<<20); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestUnpackReadsLargeWheels, whose files have more than their directory may have.
func TestUnpackReadsLargeWheels(t *testing.T) {
	content := make([]byte, maxDirectory+1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // cannot be packed smaller
	wheel := makeWheel(t, "a", wheelFile{name: "a.bin", content: string(content)})
	if len(wheel) < maxDirectory {
		t.Fatalf("the wheel has %d bytes", len(wheel))
	}
	dir, _, err := unpack(t, wheel, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a.bin")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestUnpackWritesOverNothing(t *testing.T) {
	above := t.TempDir()
	file, dir := filepath.Join(above, "x.whl"), filepath.Join(above, "files")
	p, content := lockedPackage{Name: "a", Version: "1.0"}, "of somebody else"
	wheel := makeWheel(t, "a", wheelFile{name: "a.py", content: "of the wheel"})
	if err := errors.Join(os.WriteFile(file, wheel, 0o600), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.py"), []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackWheel(t.Context(), file, dir, p, newBudget(1<<20)); !errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), "a.py") {
		t.Errorf("the folder is there: %v", err)
	}
	entries, closeZip, err := openWheel(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeZip() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := writeEntry(t.Context(), root, findEntry(entries, "a.py"), "a.py", map[string]fileHash{"a.py": {}}, newBudget(1<<20)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the file is there: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a.py")); err != nil || string(got) != content {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestStepsOfUnpackingEndWithTheirContext: each may have to look at very many names.
func TestStepsOfUnpackingEndWithTheirContext(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	file := filepath.Join(t.TempDir(), "x.whl")
	if err := os.WriteFile(file, makeWheel(t, "a", wheelFile{name: "a.py"}), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, closeZip, err := openWheel(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeZip() }()
	for name, step := range map[string]func() error{
		"the directory": func() error { _, _, _, err := openZip(ctx, file); return err },
		"its entries":   func() error { _, err := checkEntries(ctx, entries, 1<<20); return err },
		"its .dist-info": func() error {
			_, err := distInfo(ctx, entries, lockedPackage{Name: "a", Version: "1.0"})
			return err
		},
		"its places": func() error { return checkPlaces(ctx, entries, "a-1.0.dist-info") },
		"its links":  func() error { return linkTree(ctx, filepath.Dir(file), t.TempDir()) },
	} {
		if err := step(); !errors.Is(err, stopped) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestUnpackLeavesNothingOpen: a server unpacks many wheels.
func TestUnpackLeavesNothingOpen(t *testing.T) {
	for want, wheel := range map[string][]byte{
		"":                        makeWheel(t, "a", wheelFile{name: "a.py", content: "x"}),
		"not of a":                makeWheel(t, "b"),
		"RECORD does not have it": makeWheel(t, "a", wheelFile{name: "a.py", unlisted: true}),
		"not a name":              makeWheel(t, "a", wheelFile{name: "../a.py"}),
		"it is no wheel":          []byte("no"),
	} {
		dir, _, err := unpack(t, wheel, 1<<20)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if open := ostest.OpenFiles(t, filepath.Dir(filepath.Dir(dir))); len(open) > 0 {
			t.Errorf("%q are open", open)
		}
	}
}

func TestWheelThatIsMissingIsSaidToBe(t *testing.T) {
	if _, _, err := openWheel(t.Context(), filepath.Join(t.TempDir(), "x.whl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestMetadataThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a-1.0.dist-info", "METADATA"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkIdentity(root, lockedPackage{Name: "a", Version: "1.0"}); err == nil || !strings.Contains(err.Error(), "reading its METADATA: ") {
		t.Errorf("got %v", err)
	}
	root.Close()
	if open := ostest.OpenFiles(t, dir); len(open) > 0 {
		t.Errorf("%q are open", open)
	}
	if err := checkIdentity(root, lockedPackage{Name: "a", Version: "1.0"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a folder that cannot be read: %v", err)
	}
}

func TestFileNamesOfWheelsHaveAVersion(t *testing.T) {
	p := lockedPackage{Name: "a", Version: "1.0"}
	for file, ok := range map[string]bool{"a-1.0-py3-none-any.whl": true, "a-1.0.whl": false, "a.whl": false, "": false} {
		if err := p.checkFile(file); (err == nil) != ok {
			t.Errorf("%q: got %v", file, err)
		}
	}
}
