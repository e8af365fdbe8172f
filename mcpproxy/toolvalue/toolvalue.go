// Package toolvalue turns a tool's answer into the value that code in a sandbox gets, as
// JSON. The rule stands in Python in bridge/runner/toolcell_runner/toolresults.py;
// testdata/cases.json holds both to it.
package toolvalue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// A Value is the value of an answer.
type Value struct {
	JSON        json.RawMessage   // a resource's text is a string, other content as the server wrote it
	Attachments []json.RawMessage // content beside a structured value
}

// Text returns the value if it is a text.
func (v Value) Text() (text string, ok bool) {
	return rawjson.Text(v.JSON)
}

// A ToolError is the text of an answer that says that the tool failed.
type ToolError struct{ Text string }

func (e *ToolError) Error() string { return e.Text }

// Of returns the value of a CallToolResult as the server wrote it. The error is a
// ToolError if the answer is the tool's own error.
func Of(ctx context.Context, answer json.RawMessage) (Value, error) {
	return memory.Decode(ctx, "reading the answer of a tool", len(answer), memory.Result, func() (Value, error) { return of(answer) })
}

func of(answer json.RawMessage) (Value, error) {
	_, err := rawjson.Members(answer)
	var items []item
	if err == nil {
		items, err = contentOf(wire.Member(answer, "content"))
	}
	if err != nil {
		return Value{}, fmt.Errorf("reading the answer of the tool: %w", err)
	}
	var texts []string
	var files []json.RawMessage
	for _, i := range items {
		if i.isText {
			texts = append(texts, i.text)
		} else {
			files = append(files, i.value())
		}
	}
	structured := wire.Member(answer, "structuredContent")
	if string(wire.Member(answer, "isError")) == "true" {
		if text := strings.Join(texts, "\n"); text != "" {
			return Value{}, &ToolError{text}
		}
		return Value{}, &ToolError{cmp.Or(reasonIn(structured), "the tool failed and gave no reason")}
	}
	if structured != nil && !rawjson.IsNull(structured) {
		return Value{unwrapped(structured, texts), files}, nil
	}
	return Value{JSON: contentValue(items)}, nil
}

// reasonIn returns the structured content of an error that has no text, as text.
func reasonIn(structured json.RawMessage) string {
	if text, isText := rawjson.Text(structured); isText {
		return text
	}
	var short bytes.Buffer
	if json.Compact(&short, structured) != nil {
		return ""
	}
	switch s := short.String(); s {
	case "null", "{}", "[]", "false", "0":
		return ""
	default:
		return s
	}
}

// unwrapped returns the value that a server has put into an object, since MCP allows
// objects only: that of {"result": …}, or a text in an object of one member that the
// texts of the answer repeat.
func unwrapped(structured json.RawMessage, texts []string) json.RawMessage {
	members, err := rawjson.Members(structured)
	if err != nil || len(members) != 1 {
		return structured
	}
	value := members[0].Value
	if members[0].Name == "result" && !isObject(value) {
		return value
	}
	text, isText := rawjson.Text(value)
	if isText && len(texts) > 0 && (text == strings.Join(texts, "\n") || text == strings.Join(texts, "")) {
		return value
	}
	return structured
}

func contentValue(items []item) json.RawMessage {
	switch len(items) {
	case 0:
		return json.RawMessage("null")
	case 1:
		return items[0].value()
	}
	values := make([][]byte, len(items))
	for n, i := range items {
		values[n] = i.value()
	}
	return slices.Concat([]byte("["), bytes.Join(values, []byte(",")), []byte("]"))
}

// An item is one of an answer's content.
type item struct {
	raw    json.RawMessage
	isText bool
	text   string
}

// maxContents bounds the items of a result: each takes some hundred bytes.
const maxContents = 100_000

// contentOf returns the items of the content. Some servers write one item without a
// list, or {} for an empty one.
func contentOf(content json.RawMessage) (items []item, err error) {
	if content == nil || rawjson.IsNull(content) {
		return nil, nil
	}
	list := []json.RawMessage{bytes.TrimSpace(content)}
	switch {
	case isList(content):
		if list, err = rawjson.Items(content); err != nil {
			return nil, fmt.Errorf("its content %w", err)
		}
	case isObject(content):
		if inside, err := rawjson.Members(content); err == nil && len(inside) == 0 {
			return nil, nil
		}
	}
	if len(list) > maxContents {
		return nil, fmt.Errorf("its content has more than %d items", maxContents)
	}
	for _, raw := range list {
		items = append(items, itemOf(raw))
	}
	return items, nil
}

// itemOf reads one item of any type. If its text is not a string, the item's text is that
// JSON.
func itemOf(raw json.RawMessage) (i item) {
	i.raw = raw
	if i.text, i.isText = rawjson.Text(raw); i.isText || !isObject(raw) {
		return i
	}
	kind, text := wire.Member(raw, "type"), wire.Member(raw, "text")
	i.text, i.isText = rawjson.Text(text)
	switch name, _ := rawjson.Text(kind); {
	case kind == nil || rawjson.IsNull(kind):
	case name != "text":
		i.isText = false
	default:
		if !i.isText && text != nil && !rawjson.IsNull(text) {
			i.text = jsonOf(text)
		}
		i.isText = true
	}
	return i
}

// jsonOf returns JSON in its one form, or as it is if it has none.
func jsonOf(raw json.RawMessage) string {
	if one, err := rawjson.Canonical(raw); err == nil {
		return string(one)
	}
	return string(raw)
}

// value returns the item as a value. A text that is a JSON object or list is that; one
// that reads as a number or the like may be meant as a text.
func (i item) value() json.RawMessage {
	if i.isText {
		if body := []byte(i.text); (isObject(body) || isList(body)) && json.Valid(body) {
			return bytes.TrimSpace(body)
		}
		return rawjson.Quote(i.text)
	}
	resource := wire.Member(i.raw, "resource")
	if kind, _ := rawjson.Text(wire.Member(i.raw, "type")); kind != "resource" || !isObject(resource) {
		return i.raw
	}
	if _, isBlob := rawjson.Text(wire.Member(resource, "blob")); isBlob {
		return resource
	}
	if text, isText := rawjson.Text(wire.Member(resource, "text")); isText {
		return rawjson.Quote(text)
	}
	return resource
}

func isObject(raw []byte) bool { return jsontext.Value(raw).Kind() == jsontext.KindBeginObject }
func isList(raw []byte) bool   { return jsontext.Value(raw).Kind() == jsontext.KindBeginArray }
