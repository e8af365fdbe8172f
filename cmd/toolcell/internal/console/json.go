package console

import (
	"encoding/json"
	"io"
)

// PrintJSON prints a list; an empty one is [], not null.
func PrintJSON[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it is for people, not for a web page
	e.SetIndent("", "  ")
	return e.Encode(list)
}
