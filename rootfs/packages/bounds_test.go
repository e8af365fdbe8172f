package packages

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

func TestBounds(t *testing.T) {
	const wheel = `{url="https://x/a-1.0-py3-none-any.whl",hashes={sha256="4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"}}`
	const hash = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
	dir := boundtest.Dir(t)
	boundtest.Run(t, boundtest.Parser{
		Row: "package lock",
		Shapes: append(boundtest.TOML("lock-version = '1.0'\n", ""),
			boundtest.Counted("packages", "lock-version = '1.0'\n", "[[packages]]\nname = 'p%d'\nversion = '1'\nwheels = ["+wheel+"]\n", "", ""),
			boundtest.Repeated("wheels", "lock-version = '1.0'\n[[packages]]\nname = 'p'\nversion = '1'\nwheels = [", wheel+",", "]\n"),
		),
		ParseContext: func(ctx context.Context, text []byte) error {
			_, err := ParseLock(ctx, text)
			return err
		},
	}, boundtest.Parser{
		Row:    "page of an index, HTML",
		Shapes: boundtest.HTML(),
		Read:   func(ctx context.Context, r io.Reader) error { return readPage(ctx, r, "text/html") },
	}, boundtest.Parser{
		Row: "page of an index, JSON",
		Shapes: append(boundtest.Only(boundtest.JSON(`{"x":`, "}"), "deep lists", "open objects", "a wide object", "many empty objects", "long keys", "a long string", "a string that does not end", "escapes", "a huge number", "white space"),
			boundtest.Counted("files", `{"files":[`, `{"filename":"f%d","url":"u"}`, ",", "]}"),
			boundtest.Repeated("a long name", `{"files":[{"filename":"`, "f", `"}]}`),
		),
		Read: func(ctx context.Context, r io.Reader) error {
			return readPage(ctx, r, "application/vnd.pypi.simple.v1+json")
		},
	}, boundtest.Parser{
		Row:    "directory of a wheel",
		Shapes: boundtest.Zip("a-1.0.dist-info/", ".py"),
		ParseContext: func(ctx context.Context, text []byte) error {
			file := filepath.Join(dir, "directory.whl")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return err
			}
			defer os.Remove(file)
			entries, closeZip, err := openWheel(ctx, file)
			if err != nil {
				return err
			}
			_, err = distInfo(ctx, entries, lockedPackage{Name: "a", Version: "1.0"})
			if err == nil {
				err = checkPlaces(ctx, entries, "a-1.0.dist-info")
			}
			_ = closeZip()
			return err
		},
	}, boundtest.Parser{
		Row:    "files of a wheel",
		Shapes: append(boundtest.Only(boundtest.Zip("a-1.0.dist-info/", ".py"), "files", "a bomb", "bytes that are no zip"), boundtest.Shape{Name: "a wheel", Make: wholeWheel}),
		Read: func(ctx context.Context, r io.Reader) error {
			at, err := os.MkdirTemp(dir, "")
			if err != nil {
				return err
			}
			defer os.RemoveAll(at)
			file, err := os.Create(filepath.Join(at, "a.whl"))
			if err != nil {
				return err
			}
			defer file.Close()
			if _, err := io.Copy(file, io.LimitReader(&cachedir.ContextReader{Context: ctx, Inner: r}, 64<<20)); err != nil {
				return err
			}
			_, err = unpackWheel(ctx, file.Name(), filepath.Join(at, "files"), lockedPackage{Name: "a", Version: "1.0"}, newBudget(64<<20))
			return err
		},
	}, boundtest.Parser{
		Row: "RECORD of a wheel",
		Shapes: append(boundtest.Lines("", ""),
			boundtest.Counted("files", "", "f%d,"+hash+",0\n", "", ""),
			boundtest.Repeated("twins", "", "f,"+hash+",0\n", ""),
			boundtest.Counted("long names", "", strings.Repeat("f", 4000)+"%d,"+hash+",0\n", "", ""),
			boundtest.Counted("dots", "", strings.Repeat("./", 4000)+"%d,"+hash+",0\n", "", ""),
			boundtest.Repeated("quotes", "", strings.Repeat(`"`, 16000)+"\n", ""),
		),
		Read: func(ctx context.Context, r io.Reader) error {
			_, err := parseRecord(&cachedir.ContextReader{Context: ctx, Inner: r}, "a-1.0.dist-info/RECORD")
			return err
		},
	}, boundtest.Parser{
		Row:    "METADATA of a wheel",
		Shapes: boundtest.Lines("", ""),
		Parse: func(text []byte) error {
			_, _, err := readMetadata(io.LimitReader(bytes.NewReader(text), maxMetadata))
			return err
		},
	}, boundtest.Parser{
		Row: "errors of uv",
		Shapes: append(boundtest.Lines("", ""),
			boundtest.Repeated("reasons", "error: No solution found ", "because a depends on b and you require c, ", ""),
			boundtest.Repeated("requirements", "", "you require ", ""),
			boundtest.Repeated("requirements of one", "you require", " a.", ""),
			boundtest.Repeated("causes", "error sending request ", "cause: ", ""),
			boundtest.Repeated("what is not understood", "", "Couldn't parse requirement in ", ""),
			boundtest.Repeated("indexes", "", "An index (", ""),
			boundtest.Repeated("markers", "", "{", ""),
			boundtest.Repeated("versions", "only ", "a ", "is available"),
		),
		Parse: func(text []byte) error {
			r := Request{Index: "https://index.example"}
			for n := range 200 {
				r.Requirements = append(r.Requirements, fmt.Sprintf("package%d==1.0", n))
				r.Constraints = append(r.Constraints, fmt.Sprintf("package%d<2", n))
			}
			return explainResolver(Output{Code: 1, Stderr: text}, r)
		},
	})
}

func readPage(ctx context.Context, r io.Reader, kind string) error {
	page := &http.Response{Body: io.NopCloser(&cachedir.ContextReader{Context: ctx, Inner: r}), Header: http.Header{"Content-Type": {kind}}, Request: &http.Request{URL: &url.URL{}}}
	_, err := findFile(page, "a-1.0-py3-none-any.whl")
	return err
}

// wholeWheel is a wheel of empty files, of at most a mebibyte.
func wholeWheel(n int) []byte {
	var b, record bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name, content string) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			panic(err)
		}
	}
	for i := range max(1, min(n, 1<<20)/250) {
		name := fmt.Sprintf("d%d/f.py", i)
		add(name, "")
		fmt.Fprintf(&record, "%s,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n", name)
	}
	const metadata = "Name: a\nVersion: 1.0\n"
	add("a-1.0.dist-info/METADATA", metadata)
	fmt.Fprintf(&record, "a-1.0.dist-info/METADATA,sha256=mgL02xzZkpZUXLJijsf0JUDrdn6tFXL_3cu04loZYiY,%d\n", len(metadata))
	add("a-1.0.dist-info/RECORD", record.String())
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
