package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
)

// sanitize makes an error that may have words of an image in it fit for a message.
func sanitize(err error) error {
	plain, pathErr := (*RegistryError)(nil), (*fs.PathError)(nil)
	if err == nil || errors.As(err, &plain) || errors.As(err, &pathErr) {
		return err
	}
	return &answerError{err}
}

// plainJSON says of text that is no JSON of the form that is due nothing but that.
func plainJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var registry *RegistryError
	switch {
	case errors.As(err, &registry):
		return err
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not valid JSON")
	case errors.As(err, &kind):
		return fmt.Errorf("%s is a JSON %s, which it must not be", foreign(kind.Field, 100), kind.Value)
	}
	return err
}

// An answerError is an error with a registry's own words, which may be anything.
type answerError struct{ err error }

func (e *answerError) Error() string { return foreign(e.err.Error(), 1000) }
func (e *answerError) Unwrap() error { return e.err }

// foreign makes text from an image or a registry fit for a message: it is quoted
// unless all of it can be printed, and cut to so many bytes.
func foreign(s string, most int) string {
	cut := ""
	if len(s) > most {
		s, cut = strings.ToValidUTF8(s[:most], ""), "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return s + cut
}

// quoted quotes text that a user gave, cut like foreign text.
func quoted(s string) string {
	const most = 500
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// foreignNames lists names from an image, the first ones if they are many.
func foreignNames(names []string) string {
	const most = 20
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, foreign(n, 100))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}
