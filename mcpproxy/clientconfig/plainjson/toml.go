package plainjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
)

func fromTOML(data []byte) ([]byte, error) {
	if bytes.Count(data, []byte("=")) > maxKeys {
		return nil, fmt.Errorf("has more than %d keys", maxKeys)
	}
	top, err := toml.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("is not TOML: %s", text.Printable(err.Error(), 300))
	}
	w := tomlWriter{order: map[string]int{}}
	for i, key := range toml.Keys(data, 2) {
		for n := range key {
			if name := strings.Join(key[:n+1], "\x00"); w.order[name] == 0 {
				w.order[name] = i + 1
			}
		}
	}
	w.value(top, "", 0)
	return w.out.Bytes(), nil
}

// A tomlWriter writes JSON. Only the order of the first two levels matters:
// that of the servers.
type tomlWriter struct {
	out   bytes.Buffer
	order map[string]int
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
