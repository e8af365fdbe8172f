package elicitation

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds of a form.
const (
	maxDepth  = 16
	maxFields = 100
	maxTitle  = 4 << 10 // bytes of one text
)

// cleanSchema returns a schema in the same order, without white space, and with clean
// titles and descriptions. It refuses names and values with invisible characters, since
// those go back to the server unchanged, and duplicate names, which readers understand
// differently.
func cleanSchema(raw json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true))
	e := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true), jsontext.EscapeForJS(true))
	var members [maxDepth + 2]string // that are being read, by depth; those in a list have the list's
	for {
		token, err := d.ReadToken()
		var twice *jsontext.SyntacticError
		switch {
		case errors.Is(err, io.EOF) && out.Len() > 0:
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &twice):
			return nil, fmt.Errorf("%q is in it twice", text.Printable(twice.JSONPointer.LastToken(), 100))
		case err != nil:
			return nil, err
		}
		depth := d.StackDepth()
		within, n := d.StackIndex(depth)
		if _, values := d.StackIndex(0); values > 1 {
			return nil, errors.New("it is not one JSON value")
		}
		switch kind := token.Kind(); {
		case depth > maxDepth+1, depth > maxDepth && kind != '}' && kind != ']' && kind != '{' && kind != '[':
			return nil, errors.New("it is nested too deeply")
		case kind == '[':
			members[depth] = members[depth-1]
		case kind == '"':
			isName := within == '{' && n%2 == 1
			if isName {
				members[depth] = ""
			}
			clean, err := cleanText(members[depth], token.String())
			if err != nil {
				return nil, err
			}
			if isName {
				members[depth] = clean
			}
			token = jsontext.String(clean)
		}
		if err := e.WriteToken(token); err != nil {
			return nil, err
		}
	}
}

// cleanText returns a text of a member.
func cleanText(member, s string) (string, error) {
	clean := text.Clean(s)
	switch member {
	case "title", "description", "enumNames", "$comment":
		return text.Bound(clean, maxTitle), nil
	}
	if clean != s {
		return "", fmt.Errorf("%q has characters that cannot be seen", text.Printable(clean, 100))
	}
	return clean, nil
}
