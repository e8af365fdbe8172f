package requirement

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "requirement",
		Shapes: []boundtest.Shape{
			boundtest.Repeated("a name", "", "a", ""),
			boundtest.Repeated("dashes", "a", "-", "a"),
			boundtest.Repeated("extras", "a[b", ",b", "]"),
			boundtest.Repeated("versions", "a>1", ",>1", ""),
			boundtest.Repeated("a version", "a==1", ".1", ""),
			boundtest.Repeated("a huge number", "a==", "9", ""),
			boundtest.Repeated("a local version", "a==1+a", ".a", ""),
			boundtest.Repeated("a marker", `a; python_version > "3"`, ` and python_version > "3"`, ""),
			boundtest.Nested("brackets in a marker", "a; (", ")"),
			boundtest.Nested("brackets", "a (", ")"),
			boundtest.Repeated("spaces", "a", " ", ">1"),
			boundtest.Repeated("lines", "a", "\n", ""),
		},
		Parse: func(text []byte) error {
			_, err := Parse(string(text))
			_, other := ParseSpecifier(string(text))
			_, version := ParseVersion(string(text))
			if err == nil {
				err = other
			}
			if err == nil {
				err = version
			}
			return err
		},
	})
}
