package elicitation

import (
	"bytes"
	"encoding/json"
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

// cleanSchema returns a schema in the same order, without white space, with what is only
// shown (titles and descriptions) cleaned. It refuses names and values with characters
// that nobody can see, since those are returned to the server as they are, and a name
// that comes twice, which each reader would understand differently.
func cleanSchema(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out bytes.Buffer
	if err := cleanValue(d, &out, "", 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not one JSON value")
	}
	return out.Bytes(), nil
}

// cleanValue copies the next value. name is that of the member that it is in.
func cleanValue(d *json.Decoder, out *bytes.Buffer, name string, depth int) error {
	if depth > maxDepth {
		return errors.New("it is nested too deeply")
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return cleanObject(d, out, depth)
		}
		return cleanList(d, out, name, depth)
	case string:
		return cleanString(out, name, v)
	case json.Number:
		out.WriteString(v.String())
	case bool:
		fmt.Fprint(out, v)
	default:
		out.WriteString("null")
	}
	return nil
}

func cleanObject(d *json.Decoder, out *bytes.Buffer, depth int) error {
	seen := map[string]bool{}
	out.WriteByte('{')
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			return fmt.Errorf("%q is in it twice", text.Printable(name, 100))
		}
		if len(seen) > 0 {
			out.WriteByte(',')
		}
		seen[name] = true
		if err := cleanString(out, "", name); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := cleanValue(d, out, name, depth+1); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	_, err := d.Token()
	return err
}

func cleanList(d *json.Decoder, out *bytes.Buffer, name string, depth int) error {
	out.WriteByte('[')
	for i := 0; d.More(); i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := cleanValue(d, out, name, depth+1); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	_, err := d.Token()
	return err
}

// cleanString writes a text of the member name.
func cleanString(out *bytes.Buffer, name, s string) error {
	clean := text.Clean(s)
	switch name {
	case "title", "description", "enumNames", "$comment":
		clean = text.Bound(clean, maxTitle)
	default:
		if clean != s {
			return fmt.Errorf("%q has characters that cannot be seen", text.Printable(clean, 100))
		}
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(clean); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the line's end
	return nil
}
