// Package plainjson converts config files (JSON with comments, TOML and YAML) to plain
// JSON. The members of objects keep the order of the file, and the size and depth of
// the result are bounded.
package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
	"github.com/toolcell/toolcell/internal/text"
)

const (
	maxDepth     = 1000    // of nesting, in a file and in what its text becomes
	maxWritten   = 1 << 20 // TOML and YAML, which people write by hand
	maxKeys      = 10_000  // of a TOML file
	maxNodes     = 200_000 // of a YAML file with its aliases followed
	maxCommented = 60_000  // values of JSON with comments: each takes some 250 bytes
	maxConverted = 8 << 20 // of JSON made of YAML, with its aliases followed
)

// Convert turns the text of a config file into JSON, with the members of objects
// in the order of the file. Errors say where the text goes wrong.
func Convert(path string, data []byte) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("is empty")
	}
	switch ext := filepath.Ext(path); {
	case ext != ".toml" && ext != ".yaml" && ext != ".yml":
		return fromJSONC(data)
	case len(data) > maxWritten:
		return nil, fmt.Errorf("is larger than %d MiB", maxWritten>>20)
	case ext == ".toml":
		return fromTOML(data)
	}
	return fromYAML(data)
}

// fromJSONC takes JSON with comments and trailing commas, which most clients
// read under the name of JSON.
func fromJSONC(data []byte) ([]byte, error) {
	if at := tooDeep(data); at >= 0 {
		line, column := position(data, at)
		return nil, fmt.Errorf("is not JSON: line %d, column %d: nested more than %d deep", line, column, maxDepth)
	}
	if json.Valid(data) {
		return data, nil // nearly always, and ~/.claude.json may be large
	}
	values := 0
	for _, c := range data {
		if c == ',' || c == '[' || c == '{' {
			values++
		}
	}
	if values > maxCommented {
		return nil, fmt.Errorf("is not JSON without comments, and has more than %d values", maxCommented)
	}
	txt, err := hujson.Standardize(data)
	if ended, again := hujson.Standardize(append(bytes.Clone(data), '\n')); err != nil && again == nil {
		return ended, nil // it wants an end to the last comment
	}
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %s", text.Printable(strings.TrimPrefix(err.Error(), "hujson: "), 300))
	}
	return txt, nil
}

// tooDeep finds where brackets are nested deeper than maxDepth, -1 if they are
// not: parsers call themselves for each.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case c == '/' && bytes.HasPrefix(data[i:], []byte("//")):
			end := bytes.IndexByte(data[i:], '\n')
			if end < 0 {
				return -1
			}
			i += end
		case c == '/' && bytes.HasPrefix(data[i:], []byte("/*")):
			end := bytes.Index(data[i+2:], []byte("*/"))
			if end < 0 {
				return -1
			}
			i += 2 + end + 1
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}', c == ']':
			depth = max(depth-1, 0)
		}
	}
	return -1
}

func position(data []byte, at int) (line, column int) {
	before := data[:at]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}
