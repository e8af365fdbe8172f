package text_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{Row: "text for people", Shapes: boundtest.Text("", ""), Parse: func(raw []byte) error {
		s := string(raw)
		text.Excerpt(raw)
		text.Hidden(s)
		text.Visible(s)
		text.OneLine(s, 200)
		text.ShellWord(s)
		text.QuoteList(strings.SplitN(s, " ", 100), 20)
		cleaned := text.Clean(s)
		text.Summary(cleaned)
		return errors.New(text.Printable(text.CutAfter(cleaned, 1000), 200))
	}})
}
