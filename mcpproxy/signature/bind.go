package signature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

const (
	maxArguments  = 10_000 // named in one call
	shownMistakes = 10

	comparedParameters = 200 // with a name that is none of them
)

// Kinds of an ArgumentError, as Python's exceptions are called.
const (
	TypeError  = "TypeError"
	ValueError = "ValueError"
)

// An ArgumentError is the error of a call with wrong arguments. The call was not made.
type ArgumentError struct {
	Kind    string // TypeError or ValueError
	Message string
}

func (e *ArgumentError) Error() string { return e.Message }

// Bind makes the JSON object of a call's arguments, as Python binds them:
// positional ones to the parameters in order, the others by name or alias. One
// mapping alone is the arguments by name, unless it can only be the first
// argument itself. None for what may be left out, and may not be null, leaves
// it out. What fits nothing is an *ArgumentError that names what would.
func (s *Signature) Bind(tool string, positional []json.RawMessage, named []rawjson.Member) (json.RawMessage, error) {
	if len(positional) == 1 {
		if mapping, ok := s.mapping(positional[0], named); ok {
			positional, named = nil, s.overridden(mapping, named)
		}
	}
	if len(positional) > len(s.Parameters) {
		return nil, s.tooMany(tool, len(positional))
	}
	given := make([]json.RawMessage, len(s.Parameters))
	copy(given, positional)
	var extra []rawjson.Member
	var wrong, twice []string
	more := 0
	for _, a := range named {
		i := s.indexOf(a.Name)
		switch {
		case i < 0 && s.lenient:
			extra = append(extra, a)
		case i < 0 && len(wrong) < shownMistakes:
			wrong = append(wrong, s.unknown(a.Name))
		case i < 0:
			more++
		case given[i] != nil:
			twice = append(twice, quote(a.Name))
		default:
			given[i] = a.Value
		}
	}
	if more > 0 {
		wrong = append(wrong, fmt.Sprintf("has none of %d more", more))
	}
	if len(twice) > 0 {
		wrong = append(wrong, "got two values for "+joined(first20(twice), "and"))
	}
	wrong = append(wrong, s.missing(given)...)
	if len(wrong) > 0 {
		return nil, &ArgumentError{TypeError, fmt.Sprintf("%s() %s; it is %s", tool, joined(wrong, "and"), s.Line(tool, 600))}
	}
	if err := s.checkValues(tool, given, extra); err != nil {
		return nil, err
	}
	s.fillDefaults(given) // the server's own, which no check is for
	return s.encode(given, extra), nil
}

// Fit checks the values in the JSON object of a call's arguments as Bind does, but not their
// names, nor whether some are missing. It returns the object without None for arguments that
// may be left out.
func (s *Signature) Fit(tool string, arguments json.RawMessage) (json.RawMessage, error) {
	named, err := ParseArguments(arguments)
	if err != nil {
		return arguments, nil // Call says what is wrong with it
	}
	given := make([]json.RawMessage, len(s.Parameters))
	var kept, extra []rawjson.Member
	for _, a := range named {
		i := s.indexOfName(a.Name) // no alias: the server gets the names as they are
		if i >= 0 && s.Parameters[i].omits(a.Value) {
			continue
		}
		kept = append(kept, a)
		if i >= 0 {
			given[i] = a.Value
		} else {
			extra = append(extra, a)
		}
	}
	if err := s.checkValues(tool, given, extra); err != nil || len(kept) == len(named) {
		return arguments, err
	}
	return s.encode(nil, kept), nil
}

// checkValues returns an *ArgumentError for the first value that does not fit.
func (s *Signature) checkValues(tool string, given []json.RawMessage, extra []rawjson.Member) error {
	v := valueChecker{old: s.old, except: s.except, left: maxCheckWork}
	for i, value := range given {
		if value != nil {
			if err := v.refuse(tool, s.Parameters[i].python(), s.Parameters[i].schema, value); err != nil {
				return err
			}
		}
	}
	for _, a := range extra {
		of, known := s.known[a.Name]
		if !known {
			of = s.others
		}
		if err := v.refuse(tool, text.Printable(a.Name, shownLiteral), of, a.Value); err != nil {
			return err
		}
	}
	return nil
}

// Except returns the signature without checks of the values that except reports true for.
func (s *Signature) Except(except func(value json.RawMessage) bool) *Signature {
	other := *s
	other.except = except
	return &other
}

// omits reports whether a value is None for what may be left out and may not be null.
func (p *Parameter) omits(value json.RawMessage) bool {
	return rawjson.IsNull(value) && !p.Required && !p.typ.takesNull()
}

// missing drops None where it may be left out, and reports missing arguments.
func (s *Signature) missing(given []json.RawMessage) (wrong []string) {
	var missing []string
	for i := range s.Parameters {
		p := &s.Parameters[i]
		if given[i] != nil && p.omits(given[i]) {
			given[i] = nil
		}
		if given[i] == nil && p.Required {
			missing = append(missing, quote(p.python()))
		}
	}
	if len(missing) > 0 {
		wrong = []string{"lacks " + strings.Join(first20(missing), ", ")}
	}
	return wrong
}

// fillDefaults adds the defaults that the server demands.
func (s *Signature) fillDefaults(given []json.RawMessage) {
	for i := range s.Parameters {
		if p := &s.Parameters[i]; given[i] == nil && p.fill {
			given[i] = p.Default
		}
	}
}

// encode writes the arguments in the order of the parameters.
func (s *Signature) encode(given []json.RawMessage, extra []rawjson.Member) json.RawMessage {
	size := 2
	for i, value := range given {
		size += len(s.Parameters[i].Name) + len(value) + 8
	}
	out := append(make([]byte, 0, size), '{')
	add := func(name string, value json.RawMessage) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name) // strings always encode
		out = append(append(append(out, key...), ':'), value...)
	}
	for i, value := range given {
		add(s.Parameters[i].Name, value)
	}
	for _, a := range extra {
		add(a.Name, a.Value)
	}
	return append(out, '}')
}

// mapping returns the members of the only positional argument if they are the
// arguments by name. Where the first parameter could be a mapping itself, they
// are only if they fit as such.
func (s *Signature) mapping(raw json.RawMessage, named []rawjson.Member) ([]rawjson.Member, bool) {
	if t := bytes.TrimSpace(raw); len(t) == 0 || t[0] != '{' {
		return nil, false
	}
	members, err := ParseArguments(raw)
	if err != nil {
		return nil, false
	}
	if len(s.Parameters) == 0 || !s.Parameters[0].typ.takesObject() {
		return members, true
	}
	have := map[int]bool{}
	for _, a := range slices.Concat(members, named) {
		i := s.indexOf(a.Name)
		if i < 0 {
			return nil, false
		}
		have[i] = true
	}
	for i := range s.Parameters {
		if s.Parameters[i].Required && !have[i] {
			return nil, false
		}
	}
	return members, len(members) > 0
}

// overridden joins two sets of arguments; the second goes before.
func (s *Signature) overridden(under, over []rawjson.Member) []rawjson.Member {
	given := make(map[string]bool, len(over))
	for _, a := range over {
		given[s.sent(a.Name)] = true
	}
	kept := slices.DeleteFunc(under, func(a rawjson.Member) bool { return given[s.sent(a.Name)] })
	return append(kept, over...)
}

// sent is the server's name of an argument that may be given by its alias.
func (s *Signature) sent(name string) string {
	if i := s.indexOf(name); i >= 0 {
		return s.Parameters[i].Name
	}
	return name
}

// indexOf returns the number of the parameter with a name or alias, or -1. A name
// goes before another's alias.
func (s *Signature) indexOf(name string) int {
	if i := s.indexOfName(name); i >= 0 {
		return i
	}
	return slices.IndexFunc(s.Parameters, func(p Parameter) bool { return p.Alias != "" && p.Alias == name })
}

func (s *Signature) indexOfName(name string) int {
	return slices.IndexFunc(s.Parameters, func(p Parameter) bool { return p.Name == name })
}

func (s *Signature) unknown(name string) string {
	txt := "has no parameter " + quote(name)
	if len(s.Parameters) == 0 {
		return txt
	}
	names := make([]string, min(len(s.Parameters), comparedParameters))
	for i := range names {
		names[i] = s.Parameters[i].python()
	}
	if meant := text.Meant(name, names, 2); meant != "" {
		txt += " (did you mean " + quote(meant) + "?)"
	}
	return txt
}

func (s *Signature) tooMany(tool string, n int) error {
	switch {
	case len(s.Parameters) > 0:
		return &ArgumentError{TypeError, fmt.Sprintf("%s() takes at most %d arguments and got %d; it is %s", tool, len(s.Parameters), n, s.Line(tool, 600))}
	case s.lenient:
		return &ArgumentError{TypeError, tool + "() takes its arguments by name, or as one mapping: its server does not say which there are"}
	}
	return &ArgumentError{TypeError, tool + "() takes no arguments"}
}

// quote writes a name for a message as Python does.
func quote(name string) string {
	return "'" + strings.ReplaceAll(text.Printable(name, shownLiteral), "'", `\'`) + "'"
}

// joined puts and or or before the last of several parts.
func joined(parts []string, word string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " " + word + " " + parts[len(parts)-1]
}

// first20 cuts a list for a message.
func first20(list []string) []string {
	if len(list) <= 20 {
		return list
	}
	return append(slices.Clone(list[:20]), fmt.Sprintf("%d more", len(list)-20))
}
