package signature

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on signatures as text.
const (
	docComment  = 300 // bytes about one parameter
	docSize     = 16 << 10
	shownFields = 20 // that are described, for one parameter
	shortLine   = 100
)

// Doc writes the signature for reading: one parameter a line, with what its
// server says about it, or all on one line where nothing is said.
func (s *Signature) Doc(name string) string {
	returns := ""
	if s.Returns != nil {
		returns = " -> " + s.Returns.typ.fit(docAnnotation)
	}
	var lines []string
	size, plain := len(name)+len(returns), true
	for i := range s.Parameters {
		p := &s.Parameters[i]
		declaration, about := p.declaration(p.typ.fit(docAnnotation)), p.about(docComment)
		size += len(declaration) + 2
		if about != "" {
			plain = false
			about = "  # " + about
		}
		lines = append(lines, declaration+","+about)
		fields := p.typ.abouts(nil, "", shownFields)
		lines, plain = append(lines, fields...), plain && len(fields) == 0
		for _, f := range fields {
			size += len(f) + len("\n    ")
		}
		if size += len(about); size > docSize && i+1 < len(s.Parameters) {
			lines, plain = append(lines, fmt.Sprintf("# and %d more parameters", len(s.Parameters)-i-1)), false
			break
		}
	}
	if s.Extra {
		lines = append(lines, "**"+s.extraName()+",")
	}
	if plain && size <= shortLine || len(lines) == 0 {
		return name + "(" + strings.TrimSuffix(strings.Join(lines, " "), ",") + ")" + returns
	}
	return name + "(\n    " + strings.Join(lines, "\n    ") + "\n)" + returns
}

// abouts appends the descriptions of the fields inside a type, a line each.
func (p *pyType) abouts(lines []string, path string, most int) []string {
	for _, arg := range p.args {
		lines = arg.abouts(lines, path, most)
	}
	for _, f := range p.fields {
		at := path + "." + text.Printable(f.name, shownLiteral)
		if f.about != "" && len(lines) < most {
			lines = append(lines, "#   "+at+": "+f.about)
		}
		lines = f.typ.abouts(lines, at, most)
	}
	return lines
}

// about says of a parameter what its type does not.
func (p *Parameter) about(limit int) string {
	about, comment := shorten(p.Description, limit), shorten(p.comment, limit)
	if p.Alias != "" {
		about = strings.TrimSuffix(pyString(text.Clip(p.Name, shownLiteral))+": "+about, ": ")
	}
	if about == "" || comment == "" {
		return about + comment
	}
	return about + " (" + comment + ")"
}

// shorten makes one line of untrusted text, cut at a word.
func shorten(s string, limit int) string {
	s = text.Printable(s, 4*limit+100)
	if len(s) <= limit {
		return s
	}
	s = text.Clip(s, limit)
	if i := strings.LastIndexByte(s, ' '); i > limit/2 {
		s = s[:i]
	}
	return s + "…"
}
