package clientconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// fieldReader reads typed fields of one object and keeps the first error, so that
// parseEntry reads as the list of fields it is.
type fieldReader struct {
	members []rawjson.Member
	x       *expander
	dialect *Dialect
	err     error
}

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// get returns a member that is there and not null.
func (r *fieldReader) get(key string) (json.RawMessage, bool) {
	raw, ok := rawjson.Find(r.members, key)
	return raw, ok && !rawjson.IsNull(raw)
}

// name picks the name under which a field is there: one of the dialect's, else
// the usual one.
func (r *fieldReader) name(dialect []string, usual string) string {
	for _, key := range dialect {
		if _, ok := r.get(key); ok {
			return key
		}
	}
	if len(dialect) > 0 {
		return dialect[0]
	}
	return usual
}

func (r *fieldReader) boolean(key string, otherwise bool) (v bool) {
	v = otherwise
	if raw, ok := r.get(key); ok && json.Unmarshal(raw, &v) != nil {
		r.fail("%q is not true or false", key)
	}
	return v
}

// disabled reads the switch, which some write the other way round.
func (r *fieldReader) disabled() bool {
	return r.boolean("disabled", false) || !r.boolean("enabled", true)
}

func (r *fieldReader) text(key string) (v string) {
	if raw, ok := r.get(key); ok && json.Unmarshal(raw, &v) != nil {
		r.fail("%q is not a string", key)
	}
	return v
}

func (r *fieldReader) expanded(key string) string {
	v, err := r.x.expand(r.text(key))
	if err != nil {
		r.fail("%q: %w", key, err)
	}
	return v
}

// scalar reads a string, or a number or boolean as it is written: people write
// "env": {"PORT": 8080}.
func (r *fieldReader) scalar(where string, raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		r.fail("%s is not JSON", where)
	}
	switch v := v.(type) {
	case string:
		s, err := r.x.expand(v)
		if err != nil {
			r.fail("%s: %w", where, err)
		}
		return s
	case float64, bool:
		return strings.TrimSpace(string(raw))
	}
	r.fail("%s is not a string", where)
	return ""
}

func (r *fieldReader) list(key string) []string {
	if _, ok := r.get(key); !ok {
		return nil
	}
	return r.texts(key, r.items(key), 1)
}

func (r *fieldReader) items(key string) []json.RawMessage {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	list, err := rawjson.Items(raw)
	if err != nil {
		r.fail("%q is not a list", key)
	}
	return list
}

// texts reads the items of the key's list that begin with that one.
func (r *fieldReader) texts(key string, list []json.RawMessage, item int) []string {
	texts := make([]string, 0, len(list)) // an empty list is not none
	for i, raw := range list {
		texts = append(texts, r.scalar(fmt.Sprintf("item %d of %q", i+item, key), raw))
	}
	return texts
}

// tools reads a list of names of tools: nil if there is none.
func (r *fieldReader) tools(keys []string) []string {
	for _, key := range keys {
		if _, ok := r.get(key); ok {
			names := *r
			names.x = &expander{raw: true} // they have no variables
			list := names.list(key)
			r.err = names.err
			return list
		}
	}
	return nil
}

func (r *fieldReader) table(key string) map[string]string {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	all, err := rawjson.Members(raw)
	if list, notList := rawjson.Items(raw); notList == nil && len(list) == 0 {
		return nil // as ~/.opencode.json has it
	}
	if err != nil {
		r.fail("%q is not an object", key)
	}
	table := make(map[string]string, len(all))
	for _, m := range all {
		table[m.Name] = r.scalar(fmt.Sprintf("%q in %q", text.Printable(m.Name, 64), key), m.Value)
	}
	return table
}

// anyTimeouts are read in every dialect. Most clients have nothing for a server that
// takes long to start; these are Codex's names.
var anyTimeouts = []timeoutField{{"startup_timeout_sec", time.Second, false}, {"startup_timeout_ms", time.Millisecond, false}}

// timeouts reads those of the dialect, and those of all.
func (r *fieldReader) timeouts() (start, call time.Duration) {
	for _, f := range slices.Concat(r.dialect.timeouts, anyTimeouts) {
		holder, key := *r, f.key
		if outer, inner, ok := strings.Cut(f.key, "."); ok {
			raw, there := r.get(outer)
			within, err := rawjson.Members(raw)
			if !there || err != nil {
				continue
			}
			holder.members, key = within, inner
		}
		raw, ok := holder.get(key)
		var n float64
		if !ok || strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
			continue // there is none, or it is an object of several
		}
		if json.Unmarshal(raw, &n) != nil || n < 0 {
			r.fail("%q is not a number of %ss", f.key, map[time.Duration]string{time.Second: "second", time.Millisecond: "millisecond"}[f.unit])
			return 0, 0
		}
		d := time.Duration(min(n*float64(f.unit), float64(maxTimeout)))
		if f.call && call == 0 {
			call = d
		} else if !f.call && start == 0 {
			start = d
		}
	}
	return start, call
}

// transports are the words for them in all dialects.
var transports = map[string]config.Transport{
	"stdio": config.Stdio, "local": config.Stdio,
	"http": config.HTTP, "streamable-http": config.HTTP, "streamableHttp": config.HTTP, "streamable_http": config.HTTP, "streamablehttp": config.HTTP, "streamable": config.HTTP,
	"sse": config.SSE, "remote": config.Remote,
}

// transport returns the transport, and the key of the URL: httpUrl goes before a type, a type
// before a URL, a URL before a command.
func (r *fieldReader) transport() (t config.Transport, urlKey string) {
	kind := r.text("type")
	if kind == "" {
		kind = r.text("transport")
	}
	if source := r.text("source"); r.dialect.own[kind] || r.dialect.own[source] {
		r.fail("%w", ClientPart(strings.ToUpper(r.dialect.Client[:1])+r.dialect.Client[1:]))
	}
	urlKey = r.name(r.dialect.Fields.url, "url")
	if _, ok := r.get("httpUrl"); ok {
		return config.HTTP, "httpUrl"
	}
	_, hasURL := r.get(urlKey)
	_, hasCommand := r.get(r.name(r.dialect.Fields.Command, "command"))
	t, known := transports[kind]
	switch {
	case kind == "ws" || kind == "websocket":
		r.fail("transport %q is not supported; stdio, http and sse are", kind)
	case kind != "" && !known:
		r.fail("transport %q is unknown", text.Printable(kind, 64))
	case kind == "" && hasURL:
		t = r.dialect.bare
		if t == "" {
			t = config.Remote
		}
	case kind == "":
		t = config.Stdio
		if _, ok := rawjson.Find(r.members, "settings"); ok && !hasCommand && r.dialect.Client == "zed" {
			r.fail("%w", ClientPart("a Zed extension")) // settings for a server that an extension brings
		}
	}
	switch {
	case r.err != nil:
	case t == config.Stdio && !hasCommand && kind == "":
		r.err = r.lacking(r.name(r.dialect.Fields.Command, "command"), urlKey)
	case t == config.Stdio && !hasCommand:
		r.err = r.lacking(r.name(r.dialect.Fields.Command, "command"))
	case t != config.Stdio && !hasURL:
		r.err = r.lacking(urlKey)
	}
	return t, urlKey
}
