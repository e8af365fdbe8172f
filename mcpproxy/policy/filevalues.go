package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

func parseBool(path toml.Key, v any) (*bool, error) {
	b, ok := v.(bool)
	if !ok {
		return nil, wrongType(path, "true or false", v)
	}
	return &b, nil
}

// parseChoice takes one of some words.
func parseChoice[T ~string](path toml.Key, v any, words ...T) (T, error) {
	s, ok := v.(string)
	if !ok {
		return "", wrongType(path, "a string", v)
	}
	if !slices.Contains(words, T(s)) {
		known := make([]string, len(words))
		for i, w := range words {
			known[i] = string(w)
		}
		return "", &fault{path, fmt.Sprintf("%q is none of %s", text.Bound(s, 40), text.QuoteList(known, len(known)))}
	}
	return T(s), nil
}

func parseLimit(path toml.Key, v any) (int, error) {
	n, ok := v.(int64)
	switch {
	case !ok:
		return 0, wrongType(path, "a whole number", v)
	case n < 1 || n > maxLimit:
		return 0, &fault{path, fmt.Sprintf(`%d is not between 1 and %d; to forbid all calls write deny = "*", for no limit leave it out`, n, maxLimit)}
	}
	return int(n), nil
}

// parseGlobs takes one glob or a list of them. An empty list is not nil: as
// allow it allows nothing.
func parseGlobs(path toml.Key, v any) ([]glob, error) {
	patterns, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	globs := make([]glob, 0, len(patterns))
	for _, pattern := range patterns {
		g, err := parseGlob(path, pattern)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

func under(path toml.Key, key string) toml.Key { return append(slices.Clone(path), key) }

func sorted(t map[string]any) []string { return slices.Sorted(maps.Keys(t)) }

func table(path toml.Key, v any) (map[string]any, error) {
	t, ok := v.(map[string]any)
	if !ok {
		return nil, wrongType(path, "a table", v)
	}
	return t, nil
}

func wrongType(path toml.Key, want string, v any) error {
	got := "a table"
	switch v.(type) {
	case string:
		got = "a string"
	case bool:
		got = "true or false"
	case int64, float64:
		got = "a number"
	case []any, []map[string]any:
		got = "a list"
	case time.Time:
		got = "a date"
	}
	return &fault{path, fmt.Sprintf("it is %s and must be %s", got, want)}
}

func unknownKey(path toml.Key, known ...string) error {
	return &fault{path, "there is no such key; the keys are " + strings.Join(known, ", ")}
}
