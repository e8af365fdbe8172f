package signature

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on signatures as text.
const (
	docComment    = 300 // bytes about one parameter, where one tool is read about
	docSize       = 16 << 10
	stubComment   = 100 // and where all of a server are
	stubText      = 300 // bytes of a description there
	stubTool      = 6 << 10
	stubServer    = 32 << 10 // about 8,000 tokens
	stubNames     = 4 << 10  // of the tools that were cut
	shownFields   = 20       // that are described, for one parameter
	shortLine     = 100
	maxServerName = 128
	maxVariants   = 10 // classes of one name that are compared with one that contains itself
)

// Doc writes the signature for reading: one parameter a line, with what its
// server says about it, or all on one line where nothing is said.
func (s *Signature) Doc(name string) string {
	returns := ""
	if s.Returns != nil {
		returns = " -> " + s.Returns.typ.fit(docAnnotation)
	}
	return s.write(name, returns, docComment, true, func(p *Parameter) string { return p.typ.fit(docAnnotation) })
}

// write puts a signature together. nested says to tell also of the fields of
// dictionaries.
func (s *Signature) write(name, returns string, comment int, nested bool, annotation func(*Parameter) string) string {
	var lines []string
	size, plain := len(name)+len(returns), true
	for i := range s.Parameters {
		p := &s.Parameters[i]
		declaration, about := p.declaration(annotation(p)), p.about(comment)
		size += len(declaration) + 2
		if about != "" {
			plain = false
			about = "  # " + about
		}
		lines = append(lines, declaration+","+about)
		if nested {
			fields := p.typ.abouts(nil, "", shownFields)
			lines, plain = append(lines, fields...), plain && len(fields) == 0
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
	var parts []string
	if p.Alias != "" {
		parts = append(parts, pyString(text.Clip(p.Name, shownLiteral)))
	}
	if text := shorten(p.Description, limit); text != "" {
		parts = append(parts, text)
	}
	text := strings.Join(parts, ": ")
	switch {
	case p.comment == "":
		return text
	case text == "":
		return shorten(p.comment, limit)
	}
	return text + " (" + shorten(p.comment, limit) + ")"
}

// shorten makes one line of foreign text, cut at a word.
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

// A stubWriter writes functions, and before each the classes that it is the
// first to need.
type stubWriter struct {
	body      strings.Builder
	classes   map[string]string // their content to their names
	named     map[string]bool
	pending   strings.Builder  // classes of the function that is being written
	open      map[*node]string // the names of recursive ones that are being written
	prefix    string           // of its classes that have no name of their own
	described bool             // with descriptions in full
}

// typingNames are what stubs import: no class of theirs has such a name.
var typingNames = []string{"Any", "Literal", "NotRequired", "TypedDict"}

// A Function is a tool to write a stub of.
type Function struct {
	Name, Alias, Description string
	Signature                func() *Signature // called only if there is room for the tool
}

// Stubs writes the functions of a server as the text of a .pyi file, described
// in full or shortly. It is bounded, and its end names what was cut.
func Stubs(server, alias string, functions []Function, full bool) string {
	w := newStubWriter(full)
	w.add(functions, alias)
	return w.file(server, alias)
}

func newStubWriter(described bool) *stubWriter {
	w := &stubWriter{classes: map[string]string{}, named: map[string]bool{}, open: map[*node]string{}, described: described}
	for _, name := range typingNames {
		w.named[name] = true
	}
	return w
}

// add writes tools until there is no more room.
func (w *stubWriter) add(tools []Function, server string) {
	for i, t := range tools {
		text := w.function(t, t.Signature())
		if w.body.Len()+len(text) > stubServer {
			w.listCut(tools[i:], server)
			break
		}
		w.body.WriteString(text)
	}
}

// function writes one tool.
func (w *stubWriter) function(t Function, s *Signature) string {
	classes, named := maps.Clone(w.classes), maps.Clone(w.named)
	text := w.declaration(t, s, w.record)
	if len(text) > stubTool {
		w.classes, w.named = classes, named // as they are not written after all
		text = w.declaration(t, s, func(*pyType) string { return "dict" })
	}
	if len(text) > stubTool {
		text = fmt.Sprintf("async def %s(**arguments): ...  # too long to show: query_tool_docs(…, detail=\"schema\")\n", t.Alias)
	}
	return text
}

func (w *stubWriter) declaration(t Function, s *Signature, record func(*pyType) string) string {
	w.pending.Reset()
	comment, about := stubComment, stubText
	if w.described {
		comment, about = docComment, 4*stubText
	}
	w.prefix = className(t.Alias, "Tool")
	returns := ""
	if s.Returns != nil {
		w.prefix += "Result"
		returns = " -> " + s.Returns.typ.text(maxTypeDepth, record)
		w.prefix = strings.TrimSuffix(w.prefix, "Result")
	}
	txt := s.write("async def "+t.Alias, returns, comment, false, func(p *Parameter) string {
		w.prefix = className(t.Alias, "Tool") + className(p.Name, "Value")
		return p.typ.text(maxTypeDepth, record)
	})
	txt += ":"
	if doc := shorten(t.Description, about); doc != "" {
		txt += "\n    " + docstring(doc) + "\n"
	} else {
		txt += " ...\n"
	}
	if t.Name != t.Alias {
		txt = "# tool " + pyString(text.Clip(t.Name, maxParameterName)) + "\n" + txt
	}
	return w.pending.String() + txt
}

// docstring quotes foreign text so that it cannot end the quotation.
func docstring(text string) string {
	quoted := pyString(text)
	quoted = strings.NewReplacer(`\\`, `\\`, `\"`, `"`).Replace(quoted[1 : len(quoted)-1])
	end := ""
	if rest, ok := strings.CutSuffix(quoted, `"`); ok {
		quoted, end = rest, `\"`
	}
	return `"""` + strings.ReplaceAll(quoted, `"""`, `\"\"\"`) + end + `"""`
}

// record gives the name of the TypedDict of a dictionary with fields, which it
// writes if there is none yet.
func (w *stubWriter) record(p *pyType) string {
	if p.loop != nil {
		return cmp.Or(w.open[p.loop], "Any") // a list of itself has no name
	}
	base := p.name
	if base == "" {
		base = w.prefix
	}
	if !p.recursive {
		return w.class(p, base, base)
	}
	// Its fields name the class itself: it is written as if it had a name, which it has
	// if there is such a class of this content or none, and otherwise once more.
	defer delete(w.open, p.of)
	name := base
	for n := 2; n < maxVariants; n++ {
		classes, named, pending := maps.Clone(w.classes), maps.Clone(w.named), w.pending.String()
		w.open[p.of] = name
		if w.class(p, base, name) == name {
			return name
		}
		w.classes, w.named = classes, named
		w.pending.Reset()
		w.pending.WriteString(pending)
		name = fmt.Sprintf("%s%d", base, n)
	}
	delete(w.open, p.of)
	return w.class(p, base, base)
}

// class writes the TypedDict of a dictionary, unless one of the same content is there.
// outer begins the names of those inside.
func (w *stubWriter) class(p *pyType, outer, name string) string {
	var fields []string
	plain := true
	for _, f := range p.fields {
		before := w.prefix
		w.prefix = outer + className(f.name, "Value")
		txt := f.typ.text(maxTypeDepth, w.record)
		w.prefix = before
		if !f.required {
			txt = "NotRequired[" + txt + "]"
		}
		// In the body of a class, Python gives a name such as __x another one.
		plain = plain && pyname.IsIdentifier(f.name) && !strings.HasPrefix(f.name, "__")
		fields = append(fields, pyString(text.Clip(f.name, shownLiteral))+": "+txt)
	}
	content := strings.Join(fields, ", ")
	if name, ok := w.classes[content]; ok {
		return name
	}
	base := name
	for n := 2; w.named[name]; n++ {
		name = fmt.Sprintf("%s%d", base, n)
	}
	w.named[name], w.classes[content] = true, name
	if plain {
		fmt.Fprintf(&w.pending, "class %s(TypedDict):\n", name)
		for i, f := range fields {
			_, typ, _ := strings.Cut(f, `": `)
			fmt.Fprintf(&w.pending, "    %s: %s\n", p.fields[i].name, typ)
		}
	} else {
		fmt.Fprintf(&w.pending, "%s = TypedDict(%q, {%s})\n", name, name, content)
	}
	return name
}

// listCut names the tools that there was no room for.
func (w *stubWriter) listCut(tools []Function, server string) {
	fmt.Fprintf(&w.body, "# %d more tools; runtime.stubs(%q, NAME, …) shows those you name:", len(tools), server)
	for i, t := range tools {
		if i*8 > stubNames || w.body.Len() > stubServer+stubNames {
			w.body.WriteString(" …")
			break
		}
		w.body.WriteString(" " + t.Alias)
	}
	w.body.WriteByte('\n')
}

// file puts a heading and imports before the functions.
func (w *stubWriter) file(server, alias string) string {
	body := w.body.String()
	head := fmt.Sprintf("# MCP server %s: await mcp_%s.<tool>(…)\n", pyString(text.Clip(server, maxServerName)), alias)
	words := strings.FieldsFunc(body, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var imports []string
	for _, name := range typingNames {
		if slices.Contains(words, name) {
			imports = append(imports, name)
		}
	}
	if len(imports) > 0 {
		head += "from typing import " + strings.Join(imports, ", ") + "\n"
	}
	if body == "" {
		body = "# it has no tools\n"
	}
	return head + body
}
