package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// PrintJSON prints a list on standard output; an empty one is [], not null. Control
// characters are escaped, also those that JSON would allow.
func PrintJSON[T any](s *Streams, list []T) error {
	if list == nil {
		list = []T{}
	}
	return PrintJSONObject(s, list)
}

// PrintJSONObject prints one value, as PrintJSON does a list.
func PrintJSONObject(s *Streams, value any) error {
	s.JSONPrinted = true
	return writeJSON(s.Out, value)
}

func writeJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is for people, not for a web page
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(unescaped().ReplaceAllFunc(b.Bytes(), func(c []byte) []byte {
		return fmt.Appendf(nil, `\u%04x`, bytes.Runes(c)[0])
	}))
	return err
}

// unescaped finds the control characters that package json does not escape. A
// terminal obeys some of them.
var unescaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\u007f-\u009f]") })
