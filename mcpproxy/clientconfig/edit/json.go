package edit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON, with comments and trailing commas where they are. The
// parser of hujson tells where each value begins and ends.
type jsonFormat struct{}

func (jsonFormat) parse(data []byte) (map[string]any, error) {
	root, err := parseJSON(bytes.Clone(data)) // Standardize blanks comments out in place
	if err != nil {
		return nil, err
	}
	if err := checkTwice(&root); err != nil {
		return nil, err
	}
	root.Standardize()
	var top map[string]any
	if err := decode(root.Pack(), &top); err != nil {
		return nil, errors.New("is not a JSON object")
	}
	return top, nil
}

func parseJSON(data []byte) (hujson.Value, error) {
	v, err := hujson.Parse(data)
	if err != nil {
		// It wants an end to the last comment.
		if ended, again := hujson.Parse(append(bytes.Clone(data), '\n')); again == nil {
			return ended, nil
		}
		return v, fmt.Errorf("is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return v, nil
}

// checkTwice refuses an object of the first two levels that has a name twice:
// which of them counts, every reader decides for itself.
func checkTwice(root *hujson.Value) error {
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return errors.New("is not a JSON object")
	}
	objects := []*hujson.Object{top}
	for _, m := range top.Members {
		if o, ok := m.Value.Value.(*hujson.Object); ok {
			objects = append(objects, o)
		}
	}
	for _, o := range objects {
		seen := map[string]bool{}
		for _, m := range o.Members {
			name := nameOf(m)
			if seen[name] {
				return fmt.Errorf("has %q twice in one object; take one out", name)
			}
			seen[name] = true
		}
	}
	return nil
}

func nameOf(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// find gives the object at a path, with its place in the text, and nil if there
// is none. What is null counts as not there.
func findObject(root *hujson.Value, path []string) (v *hujson.Value, o *hujson.Object, err error) {
	v = root
	for i := 0; ; i++ {
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, nil, fmt.Errorf("%q is not an object", path[i-1])
		}
		if i == len(path) {
			return v, object, nil
		}
		at := indexOf(object, path[i])
		if at < 0 {
			return nil, nil, nil
		}
		v = &object.Members[at].Value
	}
}

func indexOf(o *hujson.Object, name string) int {
	for i, m := range o.Members {
		if nameOf(m) == name {
			return i
		}
	}
	return -1
}

// unit is one step of indentation in a text.
func unit(data []byte, root *hujson.Value) string {
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		at := o.Members[0].Name.StartOffset
		if in := indentOf(data, at); in != "" && blank(data[lineStart(data, at):at]) {
			return in
		}
	}
	return "  "
}

func (jsonFormat) paste(data []byte, path []string, p piece) ([]byte, error) {
	if blank(data) {
		data = []byte("{}\n")
	}
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	step, nl := unit(data, &root), lineEnd(data)
	if text := data[root.StartOffset:root.EndOffset]; bytes.Equal(withoutSpace(text), emptyAt(path)) && !bytes.Contains(text, []byte{'\n'}) {
		data = splice(data[:root.StartOffset], []byte("{}"), data[root.EndOffset:])
		if root, err = parseJSON(data); err != nil {
			return nil, err
		}
	}
	for i := len(path); ; i-- {
		v, o, err := findObject(&root, path[:i])
		if err != nil {
			return nil, err
		}
		if v != nil {
			return insert(data, v, o, p, step, nl), nil
		}
		// The object is not there: the piece becomes an object with it inside.
		in := strings.Repeat(step, i+1)
		member := fmt.Sprintf("%s: {%s%s%s%s%s}", quote(path[i-1]), nl, in, p.text(in, nl, ""), nl, strings.Repeat(step, i))
		p = piece{member: []byte(member), indent: in[len(step):]}
	}
}

// emptyAt is a file that has nothing but an empty object at path. On one line it
// leaves no indentation to follow.
func emptyAt(path []string) []byte {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("{" + quote(key) + ":")
	}
	return []byte(b.String() + "{}" + strings.Repeat("}", len(path)))
}

// withoutSpace leaves out the blanks of a text.
func withoutSpace(text []byte) []byte { return bytes.Join(bytes.Fields(text), nil) }

// text is the piece with its comments, and with a comma if there is to be one.
func (p piece) text(indent, nl, comma string) string {
	var b strings.Builder
	for line := range bytes.Lines(p.before) {
		b.WriteString(strings.TrimSpace(string(line)) + nl + indent)
	}
	if p.indent != "" && p.indent != indent {
		b.Write(bytes.ReplaceAll(p.member, []byte(nl+p.indent), []byte(nl+indent)))
	} else {
		b.Write(p.member)
	}
	b.WriteString(comma)
	if len(p.after) > 0 {
		b.WriteString(" " + string(p.after))
	}
	return b.String()
}

// insert puts a piece behind the last member of an object.
func insert(data []byte, v *hujson.Value, o *hujson.Object, p piece, step, nl string) []byte {
	outer := indentOf(data, v.StartOffset)
	inner := outer + step
	from, comma := v.StartOffset+1, ""
	if n := len(o.Members); n > 0 {
		last := o.Members[n-1]
		if at := last.Name.StartOffset; blank(data[lineStart(data, at):at]) {
			inner = indentOf(data, at)
		}
		from, comma = last.Value.EndOffset, ","
		if last.Value.AfterExtra != nil { // there is a comma already
			from, comma = from+len(last.Value.AfterExtra)+1, ""
		}
	}
	end := v.EndOffset - 1
	trailing := ""
	if len(o.Members) > 0 && comma == "" {
		trailing = "," // as the others have it
	}
	text := nl + inner + p.text(inner, nl, trailing)
	rest := data[from:end]
	if i := lineBreak(rest); i >= 0 { // behind what follows on the line of the last member
		at := from + i
		if at > from && data[at-1] == '\r' {
			at--
		}
		return splice(data[:from], []byte(comma), data[from:at], []byte(text), data[at:])
	}
	return splice(data[:from], []byte(comma), bytes.TrimRight(rest, " \t"), []byte(text+nl+outer), data[end:])
}

// lineBreak finds the first one that is not within a comment.
func lineBreak(extra []byte) int {
	for i := 0; i < len(extra); i++ {
		if extra[i] == '\n' {
			return i
		}
		if bytes.HasPrefix(extra[i:], []byte("/*")) {
			if end := bytes.Index(extra[i:], []byte("*/")); end >= 0 {
				i += end
			}
		}
	}
	return -1
}

func (jsonFormat) cut(data []byte, path []string) ([]byte, piece, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, piece{}, err
	}
	v, o, err := findObject(&root, path[:len(path)-1])
	if err != nil || v == nil {
		return nil, piece{}, fmt.Errorf("%q %w", path[len(path)-1], errAbsent)
	}
	i := indexOf(o, path[len(path)-1])
	m := o.Members[i]
	p := piece{member: data[m.Name.StartOffset:m.Value.EndOffset]}
	last := i == len(o.Members)-1
	end := m.Value.EndOffset
	hasComma := !last || m.Value.AfterExtra != nil
	if hasComma {
		end += len(m.Value.AfterExtra) + 1
	}
	extra := m.Name.StartOffset - len(m.Name.BeforeExtra)
	start := extra + len(bytes.TrimRight(m.Name.BeforeExtra, " \t"))
	if own := lineStart(data, m.Name.StartOffset); own >= extra && own > v.StartOffset && blank(data[own:m.Name.StartOffset]) {
		// On a line of its own: its comments go with it, and its whole lines.
		comments := ownComments(data, m.Name.StartOffset, firstLine(data, extra), isJSONComment)
		if after := data[end:v.EndOffset]; endsLine(after) {
			line := data[end:nextLine(data, end)]
			p.before, p.after = data[comments:own], bytes.TrimSpace(line)
			start, end = comments, end+len(line)
		}
	}
	rest := splice(data[:start], data[end:])
	if last && !hasComma && i > 0 {
		// The comma before it goes too.
		at := o.Members[i-1].Value.EndOffset + len(o.Members[i-1].Value.AfterExtra)
		rest = splice(rest[:at], rest[at+1:])
	}
	return closeEmpty(rest, path[:len(path)-1]), p, nil
}

// firstLine is the beginning of the first whole line from a place on.
func firstLine(data []byte, at int) int {
	if at == lineStart(data, at) {
		return at
	}
	return nextLine(data, at)
}

func isJSONComment(line []byte) bool { return bytes.HasPrefix(line, []byte("//")) }

// endsLine reports whether nothing but a comment follows on the line.
func endsLine(after []byte) bool {
	line := after
	before, _, ok := bytes.Cut(after, []byte{'\n'})
	if ok {
		line = before
	}
	line = bytes.TrimSpace(line)
	return ok && (len(line) == 0 || isJSONComment(line))
}
