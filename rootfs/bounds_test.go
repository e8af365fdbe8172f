package rootfs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

func TestBounds(t *testing.T) {
	dir := boundtest.Dir(t)
	boundtest.Run(t, boundtest.Parser{
		Row: "record in the cache",
		// toolcell writes it, of what an image has.
		Shapes: []boundtest.Shape{
			{Name: "variables", Make: func(n int) []byte {
				variable := `"` + strings.Repeat("v", n/1001) + `"`
				return []byte(`{"format":1,"env":[` + variable + strings.Repeat(","+variable, 999) + "]}")
			}},
			boundtest.Repeated("a long name", `{"format":1,"ref":"`, "r", `"}`),
			boundtest.Repeated("an error", `{"format":1,"error":"`, `\u003c`, `"}`),
		},
		Parse: func(text []byte) error {
			file := filepath.Join(dir, "image.json")
			defer os.Remove(file)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return err
			}
			readRecord(dir)
			_, err := readMountPoints(file)
			return err
		},
	}, boundtest.Parser{
		Row: "list of bytecode in the cache",
		Shapes: []boundtest.Shape{
			boundtest.Counted("files", `{"format":1,"files":{`, `"lib/__pycache__/f%d.pyc":"0123456789012345678901234567890123456789012345678901234567890123"`, ",", "}}"),
			boundtest.Repeated("a long name", `{"format":1,"files":{"`, "f", `":""}}`),
			boundtest.Repeated("an error", `{"format":1,"error":"`, `\u003c`, `"}`),
		},
		ParseContext: func(ctx context.Context, text []byte) error {
			file := filepath.Join(dir, bytecodeName)
			defer os.Remove(file)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return err
			}
			(&Root{Dir: filepath.Join(dir, "root")}).NeedsBytecode(ctx)
			return cachedir.ReadList(ctx, file, &bytecodeRecord{})
		},
	})
}
