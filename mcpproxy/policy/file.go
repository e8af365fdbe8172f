package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
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
