package images

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	json2 "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// sanitize makes an error that may quote an image fit for a message.
func sanitize(err error) error {
	plain, pathErr := (*RegistryError)(nil), (*fs.PathError)(nil)
	if err == nil || errors.As(err, &plain) || errors.As(err, &pathErr) {
		return err
	}
	return &answerError{err}
}

// explainJSON reduces an error of decoding JSON to what is wrong with the text.
func explainJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var token *jsontext.SyntacticError
	var wrong *json2.SemanticError
	var registry *RegistryError
	switch {
	case errors.As(err, &registry):
		return err
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.As(err, &syntax), errors.As(err, &token), errors.Is(err, io.ErrUnexpectedEOF):
		return errNotJSON
	case errors.As(err, &kind):
		got, _, _ := strings.Cut(kind.Value, " ") // a number is there with its digits
		return fmt.Errorf("%s must be %s, not %s", where(kind.Field), jsonKind(kind.Type), kindOf[got])
	case errors.As(err, &wrong):
		return wrongMember(wrong)
	}
	return err
}

var (
	errNotJSON   = errors.New("it is not valid JSON")
	errNotDigest = errors.New("is not a digest")
)

// wrongMember explains what is wrong with a member. It names the lists that contain it, but
// not the indexes of their entries.
func wrongMember(wrong *json2.SemanticError) error {
	var names []string
	for name := range wrong.JSONPointer.Tokens() {
		if strings.Trim(name, "0123456789") != "" {
			names = append(names, name)
		}
	}
	at := where(strings.Join(names, "."))
	limit := limitError(0)
	switch {
	case errors.Is(wrong.Err, errNotDigest), errors.As(wrong.Err, &limit):
		return fmt.Errorf("%s %w", at, wrong.Err)
	case wrong.JSONKind == '0' && wrong.GoType.Kind() == reflect.Int64:
		return fmt.Errorf("%s must be a whole number", at)
	}
	return fmt.Errorf("%s must be %s, not %s", at, jsonKind(wrong.GoType), kindOf[wrong.JSONKind.String()])
}

func where(field string) string {
	if field == "" {
		return "it"
	}
	return strconv.Quote(printable(field, 100))
}

// kindOf has descriptions of the kinds that encoding/json and jsontext report.
var kindOf = map[string]string{
	"object": "an object", "array": "an array", "string": "a string", "number": "a number", "bool": "true or false",
	"{": "an object", "[": "an array", "true": "true or false", "false": "true or false",
}

// jsonKind describes the kind of JSON for a type.
func jsonKind(t reflect.Type) string {
	if t == reflect.TypeFor[digest]() {
		return kindOf["string"]
	}
	switch t.Kind() {
	case reflect.Map, reflect.Struct:
		return kindOf["object"]
	case reflect.Slice, reflect.Array:
		return kindOf["array"]
	case reflect.String:
		return kindOf["string"]
	case reflect.Bool:
		return kindOf["bool"]
	}
	return kindOf["number"]
}

// lineOf returns the line in which decoding failed, 0 if unknown.
func lineOf(text []byte, err error) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at := len(text)
	switch {
	case errors.As(err, &syntax):
		at = int(syntax.Offset)
	case errors.As(err, &kind):
		at = int(kind.Offset)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return 0
	}
	return 1 + bytes.Count(bytes.TrimSpace(text[:min(at, len(text))]), []byte("\n"))
}

// An answerError is an error that quotes a registry, which may say anything.
type answerError struct{ err error }

func (e *answerError) Error() string { return printable(e.err.Error(), 1000) }
func (e *answerError) Unwrap() error { return e.err }

// printable makes text from an image or a registry fit for a message: it cuts the text to
// limit bytes, and quotes it unless every character is printable.
func printable(s string, limit int) string {
	cut := ""
	if len(s) > limit {
		s, cut = strings.ToValidUTF8(s[:limit], ""), "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return s + cut
}

// quoted quotes a user's text, cut to a limit.
func quoted(s string) string {
	const limit = 500
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// printableNames lists names from an image, only the first ones of many.
func printableNames(names []string) string {
	const limit = 20
	var out []string
	for _, n := range names[:min(len(names), limit)] {
		out = append(out, printable(n, 100))
	}
	if len(names) > limit {
		out = append(out, fmt.Sprintf("and %d more", len(names)-limit))
	}
	return strings.Join(out, ", ")
}
