package signature

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/text"
)

// tree returns the type in the form from which the runner makes Python's own types: a name,
// or a list of its kind and its parts. ok is false if typing has no such type.
func (p *pyType) tree() (tree any, ok bool) {
	list := []any{[]string{"", "list", "dict", "union", "literal", ""}[p.kind]}
	switch p.kind {
	case kindName:
		return p.name, p == typeAny || p == typeDict || p == typeList || p.isScalar()
	case kindRecord:
		return nil, false
	case kindLiteral:
		if len(p.values) > shownLiterals {
			return nil, false
		}
		for _, v := range p.values {
			raw := v.json(shownLiteral)
			if raw == nil {
				return nil, false
			}
			list = append(list, raw)
		}
	}
	for _, arg := range p.args {
		part, ok := arg.tree()
		if !ok {
			return nil, false
		}
		list = append(list, part)
	}
	return list, true
}

// fit writes the type in at most limit bytes, with less and less of what is
// deep inside of it.
func (p *pyType) fit(limit int) string {
	for depth := maxTypeDepth; depth >= 0; depth-- {
		if text := p.text(depth); len(text) <= limit {
			return text
		}
	}
	return "Any"
}

// text writes the type as Python, down to a depth.
func (p *pyType) text(depth int) string {
	switch p.kind {
	case kindList:
		if depth <= 0 {
			return "list"
		}
		return "list[" + p.args[0].text(depth-1) + "]"
	case kindDict:
		if depth <= 0 {
			return "dict"
		}
		return "dict[str, " + p.args[0].text(depth-1) + "]"
	case kindUnion:
		var parts []string
		for _, arg := range p.args {
			if part := arg.text(depth); !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, " | ")
	case kindLiteral:
		return literalText(p.values, depth)
	case kindRecord:
		if depth <= 0 {
			return "dict"
		}
		parts := make([]string, len(p.fields))
		for i, f := range p.fields {
			mark := "?: "
			if f.required {
				mark = ": "
			}
			parts[i] = pyString(text.Clip(f.name, shownLiteral)) + mark + f.typ.text(depth-1)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return p.name
}

func literalText(values []*node, depth int) string {
	var parts []string
	long := depth <= 0 && len(values) > 4
	for _, v := range values[:min(len(values), shownLiterals)] {
		part := v.python(shownLiteral)
		long = long || part == "..."
		parts = append(parts, part)
	}
	if long {
		return typeNamesOf(values)
	}
	if len(values) > shownLiterals {
		parts = append(parts, "...")
	}
	return "Literal[" + strings.Join(parts, ", ") + "]"
}

// typeNamesOf names the types of literals.
func typeNamesOf(values []*node) string {
	var names []string
	for _, v := range values {
		name := "bool"
		switch v.kind {
		case '"':
			name = "str"
		case '0':
			name = "int"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " | ")
}

// python writes a JSON value as a Python one, or as ... if that takes more than
// limit bytes.
func (n *node) python(limit int) string {
	var txt string
	switch n.kind {
	case '"':
		if len(n.text) > limit {
			return "..."
		}
		txt = pyString(n.text)
	case '0':
		txt = n.text
	case 't':
		txt = "True"
	case 'f':
		txt = "False"
	case 'n':
		txt = "None"
	default:
		parts := make([]string, 0, len(n.values))
		size := 0
		for i, v := range n.values {
			part := v.python(limit)
			if n.kind == '{' {
				part = pyString(text.Clip(n.keys[i], limit)) + ": " + part
			}
			if size += len(part); size > limit {
				return "..."
			}
			parts = append(parts, part)
		}
		txt = string(n.kind) + strings.Join(parts, ", ") + string(n.kind+2)
	}
	if len(txt) > limit {
		return "..."
	}
	return txt
}

// pyString writes text as a Python string in double quotes. Only what prints
// stays as it is, so that no text of a server can end the string or the line.
func pyString(s string) string {
	// What Go's strconv escapes, it escapes as Python does.
	return text.Visible(strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))) // also what Unicode counts as printable
}

// className makes a Python class name of any text.
func className(name, fallback string) string {
	var b strings.Builder
	up := true
	for _, r := range text.Clip(name, 60) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) && b.Len() > 0):
			if up {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
			up = false
		default:
			up = true
		}
	}
	if b.Len() == 0 || pyname.Keywords[b.String()] {
		return fallback
	}
	return b.String()
}
