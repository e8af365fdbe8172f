package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/condition"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

const maxPolicySize = 1 << 20

// readRules reads a whole policy file. Its errors name the file as name has it, and
// the line and column, or the section and key.
func readRules(file, name string) (*rules, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold us up
	if err != nil {
		return nil, fmt.Errorf("policy %s: %s", name, state.Reason(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("policy %s: it is not a regular file", name)
	}
	source, err := io.ReadAll(io.LimitReader(f, maxPolicySize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("policy %s: %s", name, state.Reason(err))
	case len(source) > maxPolicySize:
		return nil, fmt.Errorf("policy %s: it has more than %d bytes", name, maxPolicySize)
	}
	return parseRules(string(source), name)
}

// parseRules reads the text of a policy file.
func parseRules(source, name string) (*rules, error) {
	top, err := toml.Decode([]byte(source))
	if wrong, ok := errors.AsType[*toml.Error](err); ok {
		return nil, fmt.Errorf("policy %s:%d:%d: %s", name, wrong.Line, wrong.Column, wrong.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	r := &rules{file: name, packages: defaultPackages()}
	if err := r.parse(rule.At(nil, top)); err != nil {
		return nil, fmt.Errorf("policy %s, %w", name, err)
	}
	r.order(toml.Keys([]byte(source), len(toml.Key{"servers", "a", "tools", "b"})))
	return r, nil
}

func (r *rules) parse(top rule.Value) error {
	fields, err := top.Fields()
	if err != nil {
		return err
	}
	for _, f := range fields {
		switch f.Name() {
		case "approvals":
			r.approvals, err = rule.Choice(f, approvalsTell, approvalsStrict)
		case "default":
			err = r.parseSection(f, rule.Everything())
		case "servers":
			err = r.parseServers(f)
		case "network":
			r.network, err = hosts.Parse(f)
		case "packages":
			r.packages, err = parsePackages(f)
		default:
			err = f.UnknownKey("approvals", "default", "network", "packages", "servers")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) parseServers(v rule.Value) error {
	servers, err := v.Fields()
	if err != nil {
		return err
	}
	for _, server := range servers {
		about, err := server.NameGlob()
		if err != nil {
			return err
		}
		if err := r.parseSection(server, about); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) parseSection(v rule.Value, about rule.Glob) error {
	s := &section{name: "[" + v.Key().String() + "]", key: v.Key(), servers: about}
	fields, err := v.Fields()
	if err != nil {
		return err
	}
	for _, f := range fields {
		s.ownKeys = s.ownKeys || f.Name() != "tools"
		switch f.Name() {
		case "allow":
			s.allow, err = f.Globs()
		case "deny":
			s.deny, err = f.Globs()
		case "readOnly":
			s.readOnly, err = f.Bool()
		case "ask":
			s.ask, err = parseAsk(f)
		case "unasked":
			s.unasked, err = rule.Choice(f, "deny", "allow")
		case "unaskedAllow":
			s.unaskedAllow, err = f.Globs()
		case "private":
			s.private, err = f.Bool()
		case "open":
			s.open, err = f.Bool()
		case "pins":
			s.pins, err = rule.Choice(f, PinsWarn, PinsAsk, PinsRefuse)
		case "callsPerRun":
			s.limits.perRun, err = f.Count()
		case "callsPerMinute":
			s.limits.perMinute, err = f.Count()
		case "tools":
			s.tools, err = parseTools(f)
		default:
			err = f.UnknownKey("allow", "deny", "ask", "readOnly", "callsPerRun", "callsPerMinute", "unasked", "unaskedAllow", "private", "open", "pins", "tools")
		}
		if err != nil {
			return err
		}
	}
	r.sections = append(r.sections, s)
	return nil
}

func parseTools(v rule.Value) ([]toolSection, error) {
	tools, err := v.Fields()
	if err != nil {
		return nil, err
	}
	var all []toolSection
	for _, tool := range tools {
		t := toolSection{name: "[" + tool.Key().String() + "]", key: tool.Key()}
		if t.tools, err = tool.NameGlob(); err != nil {
			return nil, err
		}
		fields, err := tool.Fields()
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			switch f.Name() {
			case "callsPerRun":
				t.limits.perRun, err = f.Count()
			case "callsPerMinute":
				t.limits.perMinute, err = f.Count()
			case "when":
				t.when, err = condition.Parse(f)
			default:
				err = f.UnknownKey("callsPerRun", "callsPerMinute", "when")
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
		return cmp.Or(b.servers.Weight()-a.servers.Weight(), at[b.key.String()]-at[a.key.String()])
	})
	for _, s := range r.sections {
		slices.SortFunc(s.tools, func(a, b toolSection) int {
			return cmp.Or(b.tools.Weight()-a.tools.Weight(), at[b.key.String()]-at[a.key.String()])
		})
	}
}
