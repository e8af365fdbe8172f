// Package signature turns the JSON schemas of a tool into a Python signature: how
// the tool is called, and what a call's arguments become.
//
// Schemas come from servers and may be anything. Reading one is bounded in size,
// depth and time; a schema that makes no sense gives a signature that accepts all
// arguments. Text of a server stays inside a Python comment or string.
package signature

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/pyname"
)

// Bounds on a signature.
const (
	maxParameters    = 1000 // more than any tool has; with more, any name is taken
	maxParameterName = 200
	maxDefault       = 2 << 10 // bytes of JSON
	maxParameterText = 2 << 10 // of a description
	maxSchemaBranch  = 50      // of a top-level allOf, anyOf or oneOf
	maxCollected     = 50_000  // names of parameters read, those read again included
	lineAnnotation   = 160     // bytes of one type where a signature is one line
	docAnnotation    = 1000    // and where each parameter has a line
	briefAnnotation  = 40      // of one type or default where many tools are listed
	briefParameters  = 160     // and of all parameters there
)

// A Signature is how a tool is called from Python: its input schema as
// parameters, those that are needed first, and what its output schema says it
// returns.
type Signature struct {
	Parameters []Parameter `json:"parameters"`
	Extra      bool        `json:"extra,omitempty"`     // it takes any other arguments too
	ExtraName  string      `json:"extraName,omitempty"` // of those, where a parameter is called more
	Returns    *Annotation `json:"returns,omitempty"`   // nil if that is not known

	lenient bool                             // other arguments are let through, as nothing says which there are
	old     bool                             // the schema is of an old draft
	others  *node                            // of other arguments, but for
	known   map[string]*node                 // those that the schema has and Parameters has not
	except  func(value json.RawMessage) bool // values that are not checked; may be nil
}

// An Annotation is a type in Python.
type Annotation struct {
	Text string `json:"annotation"`
	Type any    `json:"type,omitempty"` // for the runner: see pyType.tree

	typ *pyType
}

func annotate(typ *pyType) *Annotation {
	a := &Annotation{Text: typ.fit(lineAnnotation), typ: typ}
	if tree, ok := typ.tree(); ok {
		a.Type = tree
	}
	return a
}

// A Parameter is one argument of a tool.
type Parameter struct {
	Name  string `json:"name"`            // as the server knows it
	Alias string `json:"alias,omitempty"` // where Name cannot be a Python identifier
	*Annotation
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`

	value   string // the default in Python, "" if there is none
	fill    bool   // the server demands it, but names a default that fits: it is sent if none is given
	comment string // limits and format
	schema  *node  // that its values are checked against
}

// python is the name of the parameter in Python.
func (p *Parameter) python() string {
	if p.Alias != "" {
		return p.Alias
	}
	return p.Name
}

// New reads a tool's input schema and its output schema, if it has one.
// They may be anything: a schema that makes no sense gives a signature that
// accepts all arguments.
func New(in, out json.RawMessage) *Signature {
	s := &Signature{Parameters: []Parameter{}}
	if root := parseSchema(in); root != nil {
		readParameters(s, root)
		s.nameExtra()
	} else {
		s.Extra, s.lenient = true, true
	}
	if root := parseSchema(out); root != nil {
		s.Returns = annotate(returned(root))
	}
	return s
}

// returned is the type of a tool's value, as the runner makes it: without the {"result": …}
// that servers put around values that are not objects. An object of one text may be that
// text, if the server also sends it as such, which no schema says.
func returned(root *node) *pyType {
	t := &typeBuilder{left: maxTypeNodes}
	typ := t.typeOf(root)
	if len(typ.fields) != 1 {
		return typ
	}
	switch only := typ.fields[0]; {
	case only.name == "result" && !only.typ.takesObject():
		return only.typ
	case only.typ == typeNames["string"]:
		return union(only.typ, typ)
	}
	return typ
}

// nameExtra makes sure that other arguments have a name of their own.
func (s *Signature) nameExtra() {
	taken := map[string]bool{}
	for i := range s.Parameters {
		taken[s.Parameters[i].python()] = true
	}
	if name := pyname.Unique(moreName, moreName, taken); s.Extra && name != moreName {
		s.ExtraName = name
	}
}

func (s *Signature) extraName() string { return cmp.Or(s.ExtraName, moreName) }

// moreName is what other arguments are called.
const moreName = "more"

// declaration writes a parameter as in a Python signature.
func (p *Parameter) declaration(annotation string) string {
	text := p.python() + ": " + annotation
	switch {
	case p.Required:
		return text
	case p.value != "":
		return text + " = " + p.value
	}
	return text + " = None"
}

// Line writes the signature on one line, with at most limit bytes of
// parameters.
func (s *Signature) Line(name string, limit int) string {
	returns := ""
	if s.Returns != nil {
		returns = s.Returns.Text
	}
	return s.line(name, limit, returns, func(p *Parameter) string { return p.declaration(p.Text) })
}

// Brief writes the signature for a list of tools: on one line, with the parameters
// that must be given and as many others as there is room for.
func (s *Signature) Brief(name string) string {
	returns := ""
	if s.Returns != nil {
		returns = s.Returns.typ.fit(briefAnnotation)
	}
	return s.line(name, briefParameters, returns, func(p *Parameter) string {
		short := *p
		if len(short.value) > briefAnnotation {
			short.value = "..."
		}
		return short.declaration(p.typ.fit(briefAnnotation))
	})
}

func (s *Signature) line(name string, limit int, returns string, declaration func(*Parameter) string) string {
	var b strings.Builder
	b.WriteString(name + "(")
	for i := range s.Parameters {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > limit {
			fmt.Fprintf(&b, "… and %d more", len(s.Parameters)-i)
			break
		}
		b.WriteString(declaration(&s.Parameters[i]))
	}
	if s.Extra {
		if len(s.Parameters) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("**" + s.extraName())
	}
	b.WriteByte(')')
	if returns != "" {
		b.WriteString(" -> " + returns)
	}
	return b.String()
}
