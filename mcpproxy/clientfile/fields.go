package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// entry reads typed fields of one object and keeps the first error, so that
// parseEntry reads as the list of fields it is.
type entry struct {
	members []rawjson.Member
	x       *expander
	dialect *Dialect
	err     error
}

func (e *entry) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// get returns a member that is there and not null.
func (e *entry) get(key string) (json.RawMessage, bool) {
	raw, ok := rawjson.Find(e.members, key)
	return raw, ok && !rawjson.IsNull(raw)
}

// name picks the name under which a field is there: one of the dialect's, else
// the usual one.
func (e *entry) name(dialect []string, usual string) string {
	for _, key := range dialect {
		if _, ok := e.get(key); ok {
			return key
		}
	}
	if len(dialect) > 0 {
		return dialect[0]
	}
	return usual
}

func (e *entry) boolean(key string, otherwise bool) (v bool) {
	v = otherwise
	if raw, ok := e.get(key); ok && json.Unmarshal(raw, &v) != nil {
		e.fail("%q is not true or false", key)
	}
	return v
}

// disabled reads the switch, which some write the other way round.
func (e *entry) disabled() bool {
	return e.boolean("disabled", false) || !e.boolean("enabled", true)
}

func (e *entry) text(key string) (v string) {
	if raw, ok := e.get(key); ok && json.Unmarshal(raw, &v) != nil {
		e.fail("%q is not a string", key)
	}
	return v
}

func (e *entry) expanded(key string) string {
	v, err := e.x.expand(e.text(key))
	if err != nil {
		e.fail("%q: %w", key, err)
	}
	return v
}

// scalar reads a string, or a number or boolean as the text it is written in:
// people write "env": {"PORT": 8080}.
func (e *entry) scalar(where string, raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		e.fail("%s is not JSON", where)
	}
	switch v := v.(type) {
	case string:
		s, err := e.x.expand(v)
		if err != nil {
			e.fail("%s: %w", where, err)
		}
		return s
	case float64, bool:
		return strings.TrimSpace(string(raw))
	}
	e.fail("%s is not a string", where)
	return ""
}

func (e *entry) list(key string) []string {
	raw, ok := e.get(key)
	if !ok {
		return nil
	}
	list, err := rawjson.Items(raw)
	if err != nil {
		e.fail("%q is not a list", key)
	}
	return e.texts(key, list)
}

func (e *entry) texts(key string, list []json.RawMessage) []string {
	if len(list) > maxArgs {
		e.fail("%q has more than %d items", key, maxArgs)
		return nil
	}
	texts := make([]string, 0, len(list))
	for i, item := range list {
		texts = append(texts, e.scalar(fmt.Sprintf("item %d of %q", i+1, key), item))
	}
	return texts
}

// tools reads a list of names of tools: nil if there is none.
func (e *entry) tools(keys []string) []string {
	for _, key := range keys {
		if _, ok := e.get(key); ok {
			names := *e
			names.x = &expander{raw: true} // they have no variables
			list := names.list(key)
			e.err = names.err
			return list
		}
	}
	return nil
}

func (e *entry) table(key string) map[string]string {
	raw, ok := e.get(key)
	if !ok {
		return nil
	}
	all, err := rawjson.Members(raw)
	if err != nil {
		e.fail("%q is not an object", key)
	}
	if len(all) > maxEnv {
		e.fail("%q has more than %d members", key, maxEnv)
		return nil
	}
	table := make(map[string]string, len(all))
	for _, m := range all {
		table[m.Name] = e.scalar(fmt.Sprintf("%q in %q", text.Printable(m.Name, 64), key), m.Value)
	}
	return table
}

// timeouts reads those of the dialect.
func (e *entry) timeouts() (start, call time.Duration) {
	for _, f := range e.dialect.timeouts {
		holder, key := *e, f.key
		if outer, inner, ok := strings.Cut(f.key, "."); ok {
			raw, there := e.get(outer)
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
			e.fail("%q is not a number of %ss", f.key, map[time.Duration]string{time.Second: "second", time.Millisecond: "millisecond"}[f.unit])
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

// transport decides how the server is spoken to, and under which name its URL
// is: httpUrl goes before a type, a type before a URL, a URL before a command.
func (e *entry) transport() (t config.Transport, urlKey string) {
	kind := e.text("type")
	if kind == "" {
		kind = e.text("transport")
	}
	if source := e.text("source"); e.dialect.own[kind] || e.dialect.own[source] {
		e.fail("%w", ClientPart(strings.ToUpper(e.dialect.Client[:1])+e.dialect.Client[1:]))
	}
	urlKey = e.name(e.dialect.Fields.url, "url")
	if _, ok := e.get("httpUrl"); ok {
		return config.HTTP, "httpUrl"
	}
	_, hasURL := e.get(urlKey)
	_, hasCommand := e.get(e.name(e.dialect.Fields.Command, "command"))
	t, known := transports[kind]
	switch {
	case kind == "ws" || kind == "websocket":
		e.fail("transport %q is not supported; stdio, http and sse are", kind)
	case kind != "" && !known:
		e.fail("transport %q is unknown", text.Printable(kind, 64))
	case kind == "" && hasURL:
		t = e.dialect.bare
		if t == "" {
			t = config.Remote
		}
	case kind == "":
		t = config.Stdio
		if _, ok := rawjson.Find(e.members, "settings"); ok && !hasCommand && e.dialect.Client == "zed" {
			e.fail("%w", ClientPart("a Zed extension")) // settings for a server that an extension brings
		}
	}
	switch {
	case e.err != nil:
	case t == config.Stdio && !hasCommand && kind == "":
		e.err = errors.New(`has no "command" and no "url"`)
	case t == config.Stdio && !hasCommand:
		e.err = fmt.Errorf("has no %q", e.name(e.dialect.Fields.Command, "command"))
	case t != config.Stdio && !hasURL:
		e.err = fmt.Errorf("has no %q", urlKey)
	}
	return t, urlKey
}
