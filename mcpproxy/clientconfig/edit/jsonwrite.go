package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// onlyMembers keeps some members of the top, each on lines as it had them.
func onlyMembers(data []byte, keys []string) ([]byte, error) {
	top, err := topObject(data)
	if err != nil {
		return nil, err
	}
	nl := lineEnd(data)
	out, comma := []byte("{"), ""
	for _, key := range keys {
		if i := indexOf(top, key); i >= 0 {
			m := top.Members[i]
			out = append(out, comma+nl+indentOf(data, m.Name.StartOffset)...)
			out = append(out, data[m.Name.StartOffset:m.Value.EndOffset]...)
			comma = ","
		}
	}
	return append(out, nl+"}"+nl...), nil
}

// graft puts the text of a member of the top of part in the place of data's, or
// behind its last member.
func graft(data, part []byte, key string) ([]byte, error) {
	top, err := topObject(data)
	if err != nil {
		return nil, err
	}
	members, err := topObject(part)
	if err != nil {
		return nil, err
	}
	m := members.Members[indexOf(members, key)]
	if i := indexOf(top, key); i >= 0 {
		old := top.Members[i].Value
		return splice(data[:old.StartOffset], part[m.Value.StartOffset:m.Value.EndOffset], data[old.EndOffset:]), nil
	}
	p := piece{path: []string{key}, member: part[m.Name.StartOffset:m.Value.EndOffset]}
	return jsonFormat{}.paste(data, nil, p)
}

// topObject is the object that a file is.
func topObject(data []byte) (*hujson.Object, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	_, top, err := findObject(&root, nil)
	return top, err
}

// closeEmpty writes an object that has nothing in it any more as {}.
func closeEmpty(data []byte, path []string) []byte {
	root, err := parseJSON(data)
	if err != nil {
		return data // the check that follows says so
	}
	v, o, err := findObject(&root, path)
	if err != nil || v == nil || len(o.Members) > 0 || !blank(o.AfterExtra) {
		return data
	}
	return splice(data[:v.StartOffset], []byte("{}"), data[v.EndOffset:])
}

func (jsonFormat) replace(data []byte, path []string, value json.RawMessage) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	v, o, err := findObject(&root, path[:len(path)-1])
	if err != nil || v == nil {
		return nil, fmt.Errorf("%q %w", path[len(path)-1], errAbsent)
	}
	m := o.Members[indexOf(o, path[len(path)-1])]
	text := indented(value, indentOf(data, m.Name.StartOffset), unit(data, &root), lineEnd(data))
	return splice(data[:m.Value.StartOffset], text, data[m.Value.EndOffset:]), nil
}

func (jsonFormat) write(data []byte, path []string, value json.RawMessage) (piece, error) {
	step := "  "
	if root, err := parseJSON(data); err == nil {
		step = unit(data, &root)
	}
	indent := strings.Repeat(step, len(path))
	text := indented(value, indent, step, lineEnd(data))
	return piece{path: path, member: splice([]byte(quote(path[len(path)-1])+": "), text), indent: indent}, nil
}

// indented writes a value as its neighbors are likely to be: objects over
// lines, lists on one.
func indented(value json.RawMessage, indent, step, nl string) []byte {
	var flat, b bytes.Buffer
	if json.Compact(&flat, value) != nil {
		return value // the check that follows says so
	}
	var list []json.RawMessage
	if json.Unmarshal(flat.Bytes(), &list) == nil && list != nil {
		return splice([]byte("["), bytes.Join(rawTexts(list), []byte(", ")), []byte("]"))
	}
	if flat.Bytes()[0] != '{' {
		return flat.Bytes()
	}
	b.WriteByte('{')
	d := json.NewDecoder(&flat)
	_, _ = d.Token() // the brace
	for first := true; d.More(); first = false {
		if !first {
			b.WriteByte(',')
		}
		name, _ := d.Token()
		var inner json.RawMessage
		_ = d.Decode(&inner) // it is JSON: compacted above
		b.WriteString(nl + indent + step + quote(name.(string)) + ": ")
		b.Write(indented(inner, indent+step, step, nl))
	}
	if b.Len() > 1 {
		b.WriteString(nl + indent)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func rawTexts(list []json.RawMessage) (all [][]byte) {
	for _, item := range list {
		all = append(all, item)
	}
	return all
}

// quote writes a string as JSON, with characters like < as they are.
func quote(s string) string { return string(hujson.String(s)) }
