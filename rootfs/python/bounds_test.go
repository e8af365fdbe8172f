package python

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestBounds(t *testing.T) {
	root := unpacktest.Root(t, file("lib/m.py", ""), symlink("loop", "loop"), symlink("up", "../../up/up"), dir("a/a/a"))
	boundtest.Run(t, boundtest.Parser{
		Row: "search path of an image",
		Shapes: []boundtest.Shape{
			boundtest.Repeated("folders", "", "/a:", ""),
			boundtest.Repeated("deep folders", "", "/"+strings.Repeat("a/", 300)+":", ""),
			boundtest.Repeated("links", "", "/up/a:/loop/a:", ""),
			boundtest.Repeated("dots", "/", "a/../", ""),
			boundtest.Repeated("a long name", "/", "a", ""),
			boundtest.Repeated("colons", "", ":", ""),
		},
		Read: func(ctx context.Context, r io.Reader) error {
			text, err := io.ReadAll(io.LimitReader(r, 128<<10))
			if err == nil {
				_, err = Find(ctx, root, []string{"PATH=" + string(text)})
			}
			return err
		},
	}, boundtest.Parser{
		Row: "bytecode of an image",
		Shapes: []boundtest.Shape{
			boundtest.Counted("files", "", strings.ReplaceAll(frame("/lib/__pycache__/m.%08d.pyc", strings.Repeat("x", 16)), "\x00\x00\x00\x1b", "\x00\x00\x00\x1f"), "", ""),
			boundtest.Repeated("twins", "", frame("/lib/__pycache__/m.pyc", bytecode), ""),
			boundtest.Repeated("a large file", "\x00\x00\x00\x16\x03\x00\x00\x00/lib/__pycache__/m.pyc", "x", ""),
			boundtest.Repeated("a file that is too large", "\x00\x00\x00\x16\xff\xff\xff\xff/lib/__pycache__/m.pyc", "x", ""),
			boundtest.Repeated("a name that is too long", "\xff\xff\xff\xff\x00\x00\x00\x20", "x", ""),
			boundtest.Repeated("zeros", "", "\x00", ""),
		},
		Read: func(ctx context.Context, r io.Reader) error {
			_, err := CompileModules(ctx, "/usr/bin/python3", root, 500, func(ctx context.Context, _ []string, out *os.File) error {
				for ctx.Err() == nil {
					if _, err := io.CopyN(out, r, 64<<10); err != nil {
						return err
					}
				}
				return context.Cause(ctx)
			})
			return err
		},
	})
}
