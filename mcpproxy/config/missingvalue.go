package config

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// envName returns s as part of an environment variable's name.
func envName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, strings.ToUpper(s))
}

// A MissingValueError says that an entry uses a variable or an input without a value.
type MissingValueError struct{ text string }

func (e *MissingValueError) Error() string { return e.text }

// NewMissingValueError returns an error that names what has no value, and both ways
// to give it one.
func NewMissingValueError(server string, missing []Input) error {
	var asked, variables []string
	for _, in := range missing[:min(len(missing), 8)] {
		if !in.Asked {
			variables = append(variables, in.ID)
			continue
		}
		txt := fmt.Sprintf("%q", in.ID)
		if in.Description != "" {
			txt += " (" + text.Printable(in.Description, 200) + ")"
		}
		asked = append(asked, txt)
	}
	var parts []string
	if len(variables) > 0 {
		word := "variables "
		if len(variables) == 1 {
			word = "variable "
		}
		parts = append(parts, "needs the "+word+strings.Join(variables, " and "))
	}
	if len(asked) > 0 {
		parts = append(parts, "needs a value for "+strings.Join(asked, " and "))
	}
	return &MissingValueError{fmt.Sprintf("%s: run toolcell servers set %s %s, or start toolcell with %s set",
		strings.Join(parts, " and "), text.ShellWord(server), text.ShellWord(missing[0].ID), missing[0].Variable())}
}
