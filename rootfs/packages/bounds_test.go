package packages

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	const wheel = `{url="https://x/a-1.0-py3-none-any.whl",hashes={sha256="4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"}}`
	boundtest.Run(t, boundtest.Parser{
		Row: "package lock",
		Shapes: append(boundtest.TOML("lock-version = '1.0'\n", ""),
			boundtest.Counted("packages", "lock-version = '1.0'\n", "[[packages]]\nname = 'p%d'\nversion = '1'\nwheels = ["+wheel+"]\n", "", ""),
			boundtest.Repeated("wheels", "lock-version = '1.0'\n[[packages]]\nname = 'p'\nversion = '1'\nwheels = [", wheel+",", "]\n"),
		),
		Parse: func(text []byte) error {
			_, err := ParseLock(text)
			return err
		},
	})
}
