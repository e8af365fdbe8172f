package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
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
	return checkHeadersIn(schema, map[string]bool{}, 0)
}

func checkHeadersIn(schema json.RawMessage, seen map[string]bool, depth int) error {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || depth > maxHeaderDepth {
		return nil
	}
	for argument, property := range s.Properties {
		var members map[string]json.RawMessage
		if json.Unmarshal(property, &members) != nil {
			continue // true or false
		}
		if raw, ok := members["x-mcp-header"]; ok {
			if err := checkHeader(raw, members["type"], seen); err != nil {
				return fmt.Errorf("x-mcp-header of its argument %q %w", text.Printable(argument, 80), err)
			}
		}
		if err := checkHeadersIn(property, seen, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkHeader(raw, of json.RawMessage, seen map[string]bool) error {
	var header, kind string
	if json.Unmarshal(raw, &header) != nil || !config.IsHeaderName(header) {
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
