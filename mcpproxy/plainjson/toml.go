package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

func fromTOML(data []byte) ([]byte, error) {
	if at := tooDeep(data, false); at >= 0 {
		line, column := position(data, at)
		return nil, fmt.Errorf("is not TOML: line %d, column %d: nested more than %d deep", line, column, maxDepth)
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if bytes.Count(line, []byte(".")) > maxTOMLDots {
			return nil, fmt.Errorf("is not TOML that can be read: line %d, column 1: a line with more than %d dots", n, maxTOMLDots)
		}
	}
	var v map[string]any
	meta, err := toml.Decode(string(data), &v)
	var wrong toml.ParseError
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("is not TOML: line %d, column %d: %s", wrong.Position.Line, wrong.Position.Col, text.Printable(wrong.Message, 300))
	case err != nil:
		return nil, fmt.Errorf("is not TOML: %s", text.Printable(err.Error(), 300))
	}
	w := tomlWriter{order: map[string]int{}}
	for i, key := range meta.Keys() {
		name := key[0]
		if len(key) > 1 {
			name += "\x00" + key[1]
		}
		if _, ok := w.order[name]; !ok && len(key) <= 2 {
			w.order[name] = i
		}
	}
	w.value(v, "", 0)
	return w.out.Bytes(), w.err
}

// A tomlWriter writes JSON. Only the order of the first two levels matters:
// that of the servers.
type tomlWriter struct {
	out   bytes.Buffer
	order map[string]int
	err   error
}

func (w *tomlWriter) value(v any, prefix string, level int) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		if level < 2 {
			sort.SliceStable(keys, func(i, j int) bool { return w.order[prefix+keys[i]] < w.order[prefix+keys[j]] })
		}
		w.out.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.scalar(k)
			w.out.WriteByte(':')
			w.value(v[k], k+"\x00", level+1)
		}
		w.out.WriteByte('}')
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		w.value(list, prefix, level)
	case []any:
		w.out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(item, "", 2)
		}
		w.out.WriteByte(']')
	default:
		w.scalar(v)
	}
}

func (w *tomlWriter) scalar(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null") // inf and nan
	}
	w.out.Write(text)
}
