package settings

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

// TestBounds: a project's file comes from anyone.
func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{Row: "a project's settings", Shapes: boundtest.TOML("", ""), Parse: func(data []byte) error {
		_, err := parseFile(data, nil, ProjectFile, projectMay)
		return err
	}})
}
