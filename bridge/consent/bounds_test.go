package consent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.Text("", ""), "one word", "blanks", "empty lines", "combining characters", "joiners", "escapes", "open brackets", "links", "backticks", "backslashes", "bytes that are not UTF-8")
	shapes = append(shapes, boundtest.Repeated("blanks before brackets", "", "]    (", ""))
	boundtest.Run(t, boundtest.Parser{Row: "text of a question", Shapes: shapes, Parse: func(text []byte) error {
		arguments, err := json.Marshal(map[string]string{"a": string(text)})
		if err != nil {
			return err
		}
		call := Call{Server: string(text[:min(len(text), 512)]), Tool: string(text[:min(len(text), 512)]), Arguments: arguments, Reasons: []string{string(text)}}
		said := ""
		for _, q := range []*Question{
			{Calls: []Call{call}, Effects: []string{string(text)}},
			{Calls: []Call{call, call, call}},
			{Subject: string(text), Reasons: []string{string(text)}},
			{Form: &Form{Server: "s", Message: string(text[:min(len(text), 8<<10)])}},
		} {
			said = q.Text() + q.WholeTerminalText()
			q.Choices()
		}
		return errors.New(said)
	}})
}
