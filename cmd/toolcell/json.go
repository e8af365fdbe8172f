package main

import (
	"encoding/json"
	"io"

	"github.com/urfave/cli/v2"
)

// jsonFlag is the flag of every command that shows something.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON array of objects"}
}

// printJSON prints a list; an empty one is [], not null.
func printJSON[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // nobody puts it into a page, and people read it
	e.SetIndent("", "  ")
	return e.Encode(list)
}
