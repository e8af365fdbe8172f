package match

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{Row: "names to compare", Shapes: boundtest.Text("", ""), Parse: func(text []byte) error {
		names := strings.Fields(string(text))
		Meant("create_issue", names)
		near := Nearest(string(text[:min(len(text), 512)]), names, 3)
		for _, name := range names {
			runes := []rune(name)
			Glob([]rune("*a*a*a*b"), runes[:min(len(runes), 512)])
		}
		return errors.New(strings.Join(near, " "))
	}})
}
