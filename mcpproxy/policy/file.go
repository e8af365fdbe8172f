package policy

import (
	"context"
	"crypto/sha256"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

const maxPolicySize = 1 << 20

// readRules reads a whole policy file. Its errors name the file as name has it, and
// the line, the column and the key of the mistake.
func readRules(file, name string) (*rules, error) {
	source, err := state.ReadRegular(file, maxPolicySize)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %s", name, state.Reason(err))
	}
	return parseRules(string(source), name)
}

// A policyFile is what a policy file has.
type policyFile struct {
	Approvals approvals                       `json:"approvals"`
	Default   *section                        `json:"default"`
	Network   hosts.Rules                     `json:"network"`
	Packages  packageRules                    `json:"packages"`
	Servers   toml.Table[rule.Glob, *section] `json:"servers"`
}

// parseRules reads the text of a policy file.
func parseRules(source, name string) (*rules, error) {
	f := policyFile{Packages: defaultPackages()}
	if err := toml.Unmarshal(context.Background(), []byte(source), &f); err != nil {
		if wrong, ok := errors.AsType[*toml.Error](err); ok {
			return nil, fmt.Errorf("policy %s:%d:%d: %s", name, wrong.Line, wrong.Column, wrong.Message)
		}
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	r := &rules{file: name, digest: fmt.Sprintf("%x", sha256.Sum256([]byte(source))), network: f.Network, packages: f.Packages, approvals: f.Approvals}
	for _, m := range slices.Backward(f.Servers) {
		m.Value.is(toml.Key{"servers", string(m.Key)}, m.Key)
		r.sections = append(r.sections, m.Value)
	}
	// What says more about its servers comes first, so that the first that has a key decides. Of
	// two alike, the later in the file does.
	slices.SortStableFunc(r.sections, func(a, b *section) int { return b.servers.Weight() - a.servers.Weight() })
	if f.Default != nil {
		f.Default.is(toml.Key{"default"}, rule.Everything)
		r.sections = append(r.sections, f.Default)
	}
	return r, nil
}

// is sets the key of a section, and the servers that it is about.
func (sec *section) is(key toml.Key, servers rule.Glob) {
	own := *sec
	own.WrittenTools = nil
	sec.ownKeys = !reflect.ValueOf(own).IsZero()
	sec.key, sec.name, sec.servers = key, "["+key.String()+"]", servers
	sec.Network.Named(sec.name + " network")
	sec.Install.Named(sec.name + " install")
	for _, m := range slices.Backward(sec.WrittenTools) {
		t := m.Value
		t.tools, t.key = m.Key, append(slices.Clone(key), "tools", string(m.Key))
		t.name = "[" + t.key.String() + "]"
		sec.tools = append(sec.tools, t)
	}
	slices.SortStableFunc(sec.tools, func(a, b toolSection) int { return b.tools.Weight() - a.tools.Weight() })
}

// maxCount bounds numbers of calls and packages.
const maxCount = 1_000_000

// A callCount is a number of calls, from 1.
type callCount int

// UnmarshalJSONFrom takes a whole number.
func (c *callCount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var n int
	if err := json.UnmarshalDecode(d, &n); err != nil {
		return err
	}
	if n < 1 || n > maxCount {
		return fmt.Errorf(`%d is not between 1 and %d; to forbid all calls write deny = "*", for no limit leave it out`,
			n, maxCount)
	}
	*c = callCount(n)
	return nil
}

// approvals is what happens to approvals in a terminal that are not clearly a person's.
type approvals string

const (
	approvalsTell   approvals = "tell" // also if the file does not say it
	approvalsStrict approvals = "strict"
)

// UnmarshalText takes one of them.
func (a *approvals) UnmarshalText(word []byte) (err error) {
	*a, err = rule.Choice(word, approvalsTell, approvalsStrict)
	return err
}

// unasked is what happens to a call that would be asked about where no user can be.
type unasked string

// UnmarshalText takes "deny" or "allow".
func (u *unasked) UnmarshalText(word []byte) (err error) {
	*u, err = rule.Choice[unasked](word, "deny", "allow")
	return err
}

// UnmarshalText takes one of the modes.
func (m *PinMode) UnmarshalText(word []byte) (err error) {
	*m, err = rule.Choice(word, PinsWarn, PinsAsk, PinsRefuse)
	return err
}

// UnmarshalText takes one of the modes.
func (m *RecordMode) UnmarshalText(word []byte) (err error) {
	*m, err = rule.Choice(word, RecordNone, RecordArguments, RecordAll)
	return err
}

// UnmarshalJSONFrom takes "writes", a glob, or a list of globs. In a list, "writes" would be a tool
// of that name. It is refused, since the user nearly certainly means the word and would not be asked.
func (a *askRule) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	isWord := d.PeekKind() == jsontext.KindString
	var tools toml.Strings[rule.Glob]
	if err := json.UnmarshalDecode(d, &tools); err != nil {
		return err
	}
	if isWord && tools[0] == "writes" {
		*a = askRule{writes: true}
		return nil
	}
	for _, g := range tools {
		if strings.EqualFold(string(g), "writes") {
			return fmt.Errorf(`%q would be a tool of that name; to be asked about every tool that writes: ask = "writes"; about a tool of that name: ask = "write?"`, g)
		}
	}
	*a = askRule{tools: tools}
	return nil
}
