package text_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/internal/text"
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
	}}, boundtest.Parser{Row: "names to compare", Shapes: boundtest.Text("", ""), Parse: func(raw []byte) error {
		names := strings.Fields(string(raw))
		text.Meant("create_issue", names, 3)
		near := text.Nearest(string(raw[:min(len(raw), 512)]), names, 3)
		for _, name := range names {
			runes := []rune(name)
			text.Glob("*a*a*a*b", string(runes[:min(len(runes), 512)]))
		}
		return errors.New(strings.Join(near, " "))
	}})
}
