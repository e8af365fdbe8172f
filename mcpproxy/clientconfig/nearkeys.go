package clientconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// lacking is the error of an entry that has none of these keys. It names a key of the
// entry that one of them may be meant by.
func (r *fieldReader) lacking(keys ...string) error {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = fmt.Sprintf("no %q", key)
	}
	err := fmt.Errorf("has %s", strings.Join(quoted, " and "))
	for _, m := range r.members {
		if rawjson.IsNull(m.Value) || slices.Contains(keys, m.Name) {
			continue
		}
		if meant := text.Meant(strings.TrimSpace(m.Name), keys, 3); meant != "" {
			return fmt.Errorf("%w, but has %q; did you mean %q?", err, text.Clip(m.Name, 64), meant)
		}
	}
	return err
}

// otherWords are what people write for an optional key. Every client ignores keys that
// it does not know, and these would leave a server without its arguments.
var otherWords = map[string][]string{
	"args":    {"arg", "argument", "arguments", "argv"},
	"env":     {"envs", "environ", "environment", "environmentvariables"},
	"headers": {"header", "httpheaders"},
}

// optional returns a key that may be missing. If it is, and one in the entry can only
// mean it, that is an error.
func (r *fieldReader) optional(key string) string {
	if _, ok := r.get(key); ok {
		return key
	}
	usual := key
	for word, others := range otherWords {
		if slices.Contains(others, folded(key)) {
			usual = word // the dialect has another one of them
		}
	}
	for _, m := range r.members {
		name := folded(m.Name)
		if m.Name == key || rawjson.IsNull(m.Value) || name != usual && !slices.Contains(otherWords[usual], name) {
			continue
		}
		r.fail("has %q, which does nothing; did you mean %q?", text.Clip(m.Name, 64), key)
	}
	return key
}

// folded is a key without its case, spaces, and what joins words.
func folded(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", "\t", "").Replace(text.Clip(key, 64)))
}
