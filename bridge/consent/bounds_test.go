package consent

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := func(what string) []boundtest.Shape {
		shapes := boundtest.Pick(boundtest.Text("", ""), "one word", "blanks", "empty lines", "combining characters", "joiners", "escapes", "open brackets", "links", "backticks", "backslashes", "bytes that are not UTF-8")
		return boundtest.Named(append(shapes, boundtest.Repeated("blanks before brackets", "", "]    (", "")), " in "+what)
	}
	arguments := append(boundtest.Only(boundtest.JSON(`{"a":`, "}"), "a long string", "escapes", "characters of four bytes", "a wide list", "many small objects"),
		boundtest.Repeated("backslashes", `{"a":"`, `\\`, `"}`), boundtest.Repeated("quotes", `{"a":"`, `\"`, `"}`))
	allArguments := boundtest.Named(slices.Clone(arguments), " of three calls")
	boundtest.Run(t, boundtest.Parser{Row: "text of a question", Shapes: arguments, Parse: func(text []byte) error {
		q := Question{Calls: []Call{{Server: "s", Tool: "t", Arguments: text}}}
		q.Choices()
		return errors.New(q.Text())
	}}, boundtest.Parser{Row: "text of a question", Shapes: allArguments, Parse: func(text []byte) error {
		text = text[:len(text)/3] // all calls together have that much
		call := Call{Server: "s", Tool: "t", Arguments: text}
		return errors.New((&Question{Calls: []Call{call, call, call}}).WholeTerminalText())
	}}, boundtest.Parser{Row: "text of a question", Shapes: shapes("effects"), Parse: func(text []byte) error {
		q := Question{Calls: []Call{{Server: string(text), Tool: string(text), Arguments: json.RawMessage("{}"), Reasons: []string{string(text)}, Effect: string(text), Description: string(text)}}, Effects: []string{string(text)}}
		return errors.New(q.Text())
	}}, boundtest.Parser{Row: "text of a question", Shapes: shapes("a subject"), Parse: func(text []byte) error {
		q := Question{Subject: string(text), Reasons: []string{string(text)}}
		return errors.New(q.Text() + q.WholeTerminalText())
	}}, boundtest.Parser{Row: "text of a question", Shapes: shapes("a form"), Parse: func(text []byte) error {
		q := Question{Form: &Form{Server: "s", Message: string(text)}}
		return errors.New(q.Text() + q.TerminalText())
	}})
}
