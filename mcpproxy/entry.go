package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNameLength   = 128
	maxArgs         = 4096
	maxEnv          = 4096
	maxCommandBytes = 1 << 20 // of command, arguments and environment; execve refuses about twice as much
	maxDescription  = 64 << 10
)

func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case utf8.RuneCountInString(name) > maxNameLength:
		return fmt.Errorf("its name is longer than %d characters", maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name contains control characters")
	}
	return nil
}

// parseEntry turns one entry into a server that can be started as it stands:
// variables are expanded and types are checked. Unknown keys are ignored, since
// every client has its own.
func (d *discovery) parseEntry(raw json.RawMessage) (s Server, disabled bool, err error) {
	all, err := members(raw)
	if err != nil {
		return s, false, errors.New("its entry is not an object")
	}
	e := entry{members: all, expand: func(v string) (string, error) { return expand(v, d.env) }}
	if disabled = e.boolean("disabled"); disabled && e.err == nil {
		return s, true, nil
	}
	if err := e.transport(); err != nil {
		return s, false, err
	}
	s.Transport = Stdio
	s.Command = d.expandHome(e.expanded("command"))
	s.Args = e.list("args")
	s.Env = e.table("env")
	s.Dir = d.expandHome(e.expanded("cwd"))
	s.Description = clip(e.text("description"), maxDescription)
	if e.err != nil {
		return s, false, e.err
	}
	return s, false, checkCommand(s)
}

// checkCommand refuses what execve would refuse, in words that help.
func checkCommand(s Server) error {
	if strings.TrimSpace(s.Command) == "" {
		return errors.New(`"command" is empty`)
	}
	size := len(s.Command) + len(s.Dir)
	words := append([]string{s.Command, s.Dir}, s.Args...)
	for _, k := range sortedKeys(s.Env) {
		if k == "" || strings.Contains(k, "=") {
			return fmt.Errorf("%q is no name for an environment variable", k)
		}
		words = append(words, k, s.Env[k])
	}
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			return errors.New("its command, arguments or environment contain a NUL character")
		}
		size += len(w) + 1
	}
	if size > maxCommandBytes {
		return errors.New("its command, arguments and environment are too long")
	}
	return nil
}

// entry reads typed fields of one object and keeps the first error, so that
// parseEntry reads as the list of fields it is.
type entry struct {
	members []member
	expand  func(string) (string, error)
	err     error
}

func (e *entry) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// get returns a member that is there and not null.
func (e *entry) get(key string) (json.RawMessage, bool) {
	raw, ok := find(e.members, key)
	return raw, ok && !isNull(raw)
}

func (e *entry) boolean(key string) (v bool) {
	if raw, ok := e.get(key); ok && json.Unmarshal(raw, &v) != nil {
		e.fail("%q is not true or false", key)
	}
	return v
}

func (e *entry) text(key string) (v string) {
	if raw, ok := e.get(key); ok && json.Unmarshal(raw, &v) != nil {
		e.fail("%q is not a string", key)
	}
	return v
}

func (e *entry) expanded(key string) string {
	v, err := e.expand(e.text(key))
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
		s, err := e.expand(v)
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
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		e.fail("%q is not a list", key)
	}
	if len(items) > maxArgs {
		e.fail("%q has more than %d items", key, maxArgs)
		return nil
	}
	var list []string
	for i, item := range items {
		list = append(list, e.scalar(fmt.Sprintf("item %d of %q", i+1, key), item))
	}
	return list
}

func (e *entry) table(key string) map[string]string {
	raw, ok := e.get(key)
	if !ok {
		return nil
	}
	all, err := members(raw)
	if err != nil {
		e.fail("%q is not an object", key)
	}
	if len(all) > maxEnv {
		e.fail("%q has more than %d members", key, maxEnv)
		return nil
	}
	table := make(map[string]string, len(all))
	for _, m := range all {
		table[m.name] = e.scalar(fmt.Sprintf("%q in %q", printable(m.name, 64), key), m.value)
	}
	return table
}

// transport checks that the entry is for a server this package can start.
func (e *entry) transport() error {
	kind := e.text("type")
	if kind == "" {
		kind = e.text("transport")
	}
	if e.err != nil {
		return e.err
	}
	switch kind {
	case "", "stdio":
	case "http", "sse", "ws", "streamable-http", "streamableHttp", "streamable_http":
		return fmt.Errorf("transport %q is not supported yet", kind)
	default:
		return fmt.Errorf("transport %q is unknown", printable(kind, 64))
	}
	if _, ok := e.get("command"); ok {
		return nil
	}
	for _, key := range []string{"url", "httpUrl", "serverUrl"} {
		if _, ok := e.get(key); ok {
			return errors.New(`transport "http" is not supported yet`)
		}
	}
	return errors.New(`has no "command"`)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
