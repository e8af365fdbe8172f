package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

const (
	maxPolicySize = 1 << 20
	maxLimit      = 1_000_000
)

// readRules reads a whole policy file. Its errors name the file as name has it, and
// the line and column, or the section and key.
func readRules(file, name string) (*rules, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold us up
	if err != nil {
		return nil, fmt.Errorf("policy %s: %s", name, statefile.Reason(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("policy %s: it is not a regular file", name)
	}
	source, err := io.ReadAll(io.LimitReader(f, maxPolicySize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("policy %s: %s", name, statefile.Reason(err))
	case len(source) > maxPolicySize:
		return nil, fmt.Errorf("policy %s: it has more than %d bytes", name, maxPolicySize)
	}
	return parseRules(string(source), name)
}

// A fault is something wrong at one key of the file.
type fault struct {
	key  toml.Key
	text string
}

func (f *fault) Error() string { return f.text }

// place is a key as a user finds it in the file: its section in brackets, and the
// name of the key.
func place(key toml.Key) string {
	last := len(key) - 1
	if last == 0 {
		return key.String()
	}
	return "[" + key[:last].String() + "] " + key[last:].String()
}

// lineAndColumn counts from 1. The library's own column is wrong at the start
// of a line.
func lineAndColumn(source string, at int) string {
	before := source[:min(max(at, 0), len(source))] // the library gives -1 for the very start
	line := strings.LastIndexByte(before, '\n') + 1
	return fmt.Sprintf(":%d:%d", strings.Count(before, "\n")+1, utf8.RuneCountInString(before[line:])+1)
}

// parseRules reads the text of a policy file.
func parseRules(source, name string) (*rules, error) {
	var top map[string]any
	meta, err := toml.Decode(source, &top)
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		return nil, fmt.Errorf("policy %s%s: %s", name, lineAndColumn(source, syntax.Position.Start), syntax.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	r := &rules{file: name, packages: defaultPackages()}
	err = r.parse(top)
	var at *fault
	if errors.As(err, &at) {
		return nil, fmt.Errorf("policy %s, %s: %w", name, place(at.key), err)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	r.order(meta.Keys())
	return r, nil
}

func (r *rules) parse(top map[string]any) error {
	for _, key := range sorted(top) {
		path := toml.Key{key}
		switch key {
		case "default":
			s, err := parseSection(path, "*", top[key])
			if err != nil {
				return err
			}
			r.sections = append(r.sections, s)
		case "servers":
			servers, err := table(path, top[key])
			if err != nil {
				return err
			}
			for _, server := range sorted(servers) {
				s, err := parseSection(under(path, server), server, servers[server])
				if err != nil {
					return err
				}
				r.sections = append(r.sections, s)
			}
		case "network":
			n, err := parseNetwork(path, top[key])
			if err != nil {
				return err
			}
			r.network = n
		case "packages":
			p, err := parsePackages(path, top[key])
			if err != nil {
				return err
			}
			r.packages = p
		default:
			return unknownKey(path, "default", "network", "packages", "servers")
		}
	}
	return nil
}

func parseSection(path toml.Key, pattern string, v any) (*section, error) {
	s := &section{name: "[" + path.String() + "]", key: path}
	var err error
	if s.servers, err = parseGlob(path, pattern); err != nil {
		return nil, err
	}
	keys, err := table(path, v)
	if err != nil {
		return nil, err
	}
	for _, key := range sorted(keys) {
		at, v := under(path, key), keys[key]
		s.ownKeys = s.ownKeys || key != "tools"
		switch key {
		case "allow":
			s.allow, err = parseGlobs(at, v)
		case "deny":
			s.deny, err = parseGlobs(at, v)
		case "readOnly":
			s.readOnly, err = parseBool(at, v)
		case "ask":
			s.ask, err = parseAsk(at, v)
		case "unasked":
			s.unasked, err = parseChoice(at, v, "deny", "allow")
		case "unaskedAllow":
			s.unaskedAllow, err = parseGlobs(at, v)
		case "private":
			s.private, err = parseBool(at, v)
		case "open":
			s.open, err = parseBool(at, v)
		case "pins":
			s.pins, err = parseChoice(at, v, PinsWarn, PinsAsk, PinsRefuse)
		case "callsPerRun":
			s.limits.perRun, err = parseLimit(at, v)
		case "callsPerMinute":
			s.limits.perMinute, err = parseLimit(at, v)
		case "tools":
			s.tools, err = parseTools(at, v)
		default:
			err = unknownKey(at, "allow", "deny", "ask", "readOnly", "callsPerRun", "callsPerMinute", "unasked", "unaskedAllow", "private", "open", "pins", "tools")
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func parseTools(path toml.Key, v any) ([]toolSection, error) {
	tools, err := table(path, v)
	if err != nil {
		return nil, err
	}
	var all []toolSection
	for _, pattern := range sorted(tools) {
		at := under(path, pattern)
		t := toolSection{name: "[" + at.String() + "]", key: at}
		if t.tools, err = parseGlob(at, pattern); err != nil {
			return nil, err
		}
		keys, err := table(at, tools[pattern])
		if err != nil {
			return nil, err
		}
		for _, key := range sorted(keys) {
			at, v := under(at, key), keys[key]
			switch key {
			case "callsPerRun":
				t.limits.perRun, err = parseLimit(at, v)
			case "callsPerMinute":
				t.limits.perMinute, err = parseLimit(at, v)
			case "when":
				t.when, err = parseConditions(at, v)
			default:
				err = unknownKey(at, "callsPerRun", "callsPerMinute", "when")
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, t)
	}
	return all, nil
}

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

// order puts the sections that say more about their servers first, so that
// the first that has a key decides. Of two alike, the later in the file does.
func (r *rules) order(keys []toml.Key) {
	at := map[string]int{}
	for i, k := range keys {
		for n := range k {
			if prefix := k[:n+1].String(); at[prefix] == 0 {
				at[prefix] = i + 1
			}
		}
	}
	slices.SortFunc(r.sections, func(a, b *section) int {
		aDefault, bDefault := a.isDefault(), b.isDefault()
		switch {
		case aDefault != bDefault && bDefault:
			return -1
		case aDefault != bDefault:
			return 1
		}
		return cmp.Or(b.servers.weight()-a.servers.weight(), at[b.key.String()]-at[a.key.String()])
	})
	for _, s := range r.sections {
		slices.SortFunc(s.tools, func(a, b toolSection) int {
			return cmp.Or(b.tools.weight()-a.tools.weight(), at[b.key.String()]-at[a.key.String()])
		})
	}
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
