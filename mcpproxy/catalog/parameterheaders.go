package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/net/http/httpguts"
)

// maxHeaderDepth bounds how deep in a schema headers are looked for.
const maxHeaderDepth = 50

// checkParameterHeaders refuses a schema that names headers for arguments in a way that
// no request could follow, as clients have to (MCP 2026-07-28, SEP-2243): a header
// that is no token, that two arguments have, or for an argument that is no string,
// whole number or boolean.
func checkParameterHeaders(schema json.RawMessage) error {
	if !strings.Contains(string(schema), "x-mcp-header") {
		return nil
	}
	var top headerNode
	var odd *json.UnmarshalTypeError // true or false in place of a schema, say
	if err := json.Unmarshal(schema, &top); err != nil && !errors.As(err, &odd) {
		return nil
	}
	return top.check(map[string]bool{}, 0)
}

// A headerNode is what of a schema says something of headers. All of it is read at once:
// to read each level by itself takes as many times as long as there are levels.
type headerNode struct {
	Header     json.RawMessage        `json:"x-mcp-header"`
	Type       json.RawMessage        `json:"type"`
	Properties map[string]*headerNode `json:"properties"`
}

func (n *headerNode) check(seen map[string]bool, depth int) error {
	if depth > maxHeaderDepth {
		return nil
	}
	for argument, property := range n.Properties {
		if property == nil {
			continue
		}
		if property.Header != nil {
			if err := checkHeader(property.Header, property.Type, seen); err != nil {
				return fmt.Errorf("x-mcp-header of its argument %q %w", text.Printable(argument, 80), err)
			}
		}
		if err := property.check(seen, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkHeader(raw, of json.RawMessage, seen map[string]bool) error {
	var header, kind string
	if json.Unmarshal(raw, &header) != nil || !httpguts.ValidHeaderFieldName(header) {
		return fmt.Errorf("is no name for a header: %s", text.Printable(string(raw), 80))
	}
	if json.Unmarshal(of, &kind) != nil || !slices.Contains([]string{"string", "integer", "boolean"}, kind) {
		return errors.New("needs the type string, integer or boolean")
	}
	name := strings.ToLower(header)
	if seen[name] {
		return fmt.Errorf("is that of another, %q", header)
	}
	seen[name] = true
	return nil
}
