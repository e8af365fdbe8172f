package npm

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/packages"
)

func TestBounds(t *testing.T) {
	const head, tail = `{"lockfileVersion":3,"packages":{`, "}}"
	good := `{"version":"1.0.0","resolved":"` + registry + `/a.tgz","integrity":"` + integrity(nil) + `"}`
	dir := boundtest.Dir(t)
	boundtest.Run(t, boundtest.Parser{
		Row: "lock of npm",
		Shapes: append(boundtest.Only(boundtest.JSON(head+`"node_modules/a":{"funding":`, "}}}"), "deep lists", "open objects", "a wide object", "long keys", "a long string", "a huge number"),
			boundtest.Counted("packages", head, `"node_modules/p%d":`+good, ",", tail),
			boundtest.Counted("empty packages", head, `"node_modules/p%d":{}`, ",", tail),
			boundtest.Repeated("a deep path", head+`"`, "node_modules/a/", `":`+good+tail),
			boundtest.Counted("what it is for", head+`"":{"dependencies":{`, `"p%d":""`, ",", "}}"+tail),
			boundtest.Repeated("platforms", head+`"node_modules/a":{"os":[`, `"a",`, "]}"+tail),
			boundtest.Repeated("a long integrity", head+`"node_modules/a":{"integrity":"`, "sha512-a ", `"}`+tail),
		),
		Parse: func(lock []byte) error {
			_, err := parseLock(lock, Source{Registry: registry}, linux)
			return err
		},
	}, boundtest.Parser{
		Row: "tarball of npm",
		// What reads tars is measured in rootfs/unpack too, with more shapes.
		Shapes: append(boundtest.Only(boundtest.Compressed(), "zeros in gzip", "empty members of gzip", "a name of gzip that does not end", "bytes that are not compressed"), compressed(boundtest.Only(boundtest.Tar(), "files", "deep folders", "extended attributes", "PAX headers in a row"))...),
		Read: func(ctx context.Context, r io.Reader) error {
			at, err := os.MkdirTemp(dir, "")
			if err != nil {
				return err
			}
			defer os.RemoveAll(at)
			root, err := os.OpenRoot(at)
			if err != nil {
				return err
			}
			defer root.Close()
			p := Package{Path: "node_modules/a", Name: "a", Version: "1.0.0"}
			return (&Tree{packages: []Package{p}}).unpack(ctx, root, p, &cachedir.ContextReader{Context: ctx, Inner: r}, newBudget(64<<20))
		},
	}, boundtest.Parser{
		Row: "package.json",
		Shapes: append(boundtest.Only(boundtest.JSON(`{"x":`, "}"), "deep lists", "open objects", "a wide object", "a long string"),
			boundtest.Counted("programs", `{"bin":{`, `"p%d":"f"`, ",", "}}"),
			boundtest.Repeated("a long program", `{"bin":"`, "d/", `"}`),
		),
		Parse: func(content []byte) error {
			m, err := parseManifest(content)
			if err == nil {
				_, err = m.choose("a", "")
			}
			return err
		},
	}, boundtest.Parser{
		Row:    "errors of npm",
		Shapes: append(boundtest.Lines("", ""), boundtest.Repeated("codes", "", "npm error code E404\n", ""), boundtest.Repeated("empty ones", "", "npm error \n", "")),
		Parse:  func(stderr []byte) error { return explain(packages.Output{Code: 1, Stderr: stderr}) },
	})
}

// compressed returns shapes of tars as tarballs. What is in one is in the other, so they
// are made in the size of the tar.
func compressed(tars []boundtest.Shape) (shapes []boundtest.Shape) {
	for _, s := range tars {
		shapes = append(shapes, boundtest.Shape{Name: s.Name + ", compressed", Make: func(n int) []byte {
			var b bytes.Buffer
			z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
			if err == nil {
				_, err = z.Write(s.Make(max(n-n/1000-100, 512)))
			}
			if err == nil {
				err = z.Close()
			}
			if err != nil {
				panic(err)
			}
			return b.Bytes()[:min(n, b.Len())]
		}})
	}
	return shapes
}
