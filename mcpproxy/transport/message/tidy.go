package message

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// AnswerTo returns the answer to a request of the SDK's own as the SDK can read it.
func AnswerTo(id jsonrpc.ID, method string, result json.RawMessage) *jsonrpc.Response {
	if len(result) > maxOwn {
		return failedAnswer(nil, id, Unreadable("it has %d bytes; the most is %d", len(result), maxOwn))
	}
	if r, _ := ReplyOf(context.Background(), result); method != "" && r.deep {
		return failedAnswer(nil, id, Unreadable("it nests deeper than %d", maxNesting))
	}
	result, err := tidyResult(method, result)
	if err != nil {
		return failedAnswer(nil, id, err)
	}
	return &jsonrpc.Response{ID: id, Result: result}
}

// tidyResult returns the result of a handshake as the SDK can read it: an empty list
// counts as an object, since some languages write so, and members that are only shown are
// left out if they have a wrong type. Any other wrong type is an error.
func tidyResult(method string, result json.RawMessage) (json.RawMessage, error) {
	if method != MethodInitialize && method != MethodDiscover {
		return result, nil
	}
	wrong := func(name, should string, value json.RawMessage) error {
		return unreadable(fmt.Errorf("%s must be %s, not %s", name, should, wire.KindOf(value)))
	}
	if wire.IsEmptyList(result) {
		result = json.RawMessage("{}")
	}
	if !isObject(result) {
		return nil, wrong("its result", "an object", result)
	}
	if version := wire.Member(result, "protocolVersion"); version != nil && version[0] != '"' {
		return nil, wrong("its protocolVersion", "text", version)
	}
	if versions := wire.Member(result, "supportedVersions"); versions != nil && json.Unmarshal(versions, new([]string)) != nil {
		return nil, unreadable(fmt.Errorf("its supportedVersions must be a list of texts"))
	}
	switch has := wire.Member(result, "capabilities"); {
	case wire.IsEmptyList(has):
		result = wire.Replace(result, []byte("{}"), "capabilities")
	case has != nil && !isObject(has) && string(has) != "null":
		return nil, wrong("its capabilities", "an object", has)
	}
	for _, s := range shown {
		value := wire.Member(result, s.path...)
		if value == nil || s.fits(value) {
			continue
		}
		result = wire.Replace(result, s.instead(value), s.path...)
	}
	return result, nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// A member is a member of a result that the SDK decodes.
type member struct {
	path []string
	kind kind
}

type kind byte

const (
	object kind = iota
	words
	yesOrNo
	whole // a number without a fraction
	unused
)

// shown are members that a server can do without. Inner ones come after outer ones.
var shown = []member{
	{[]string{"_meta"}, object},
	{[]string{"_meta", "io.modelcontextprotocol/serverInfo"}, object},
	{[]string{"instructions"}, words},
	{[]string{"resultType"}, words},
	{[]string{"cacheScope"}, words},
	{[]string{"ttlMs"}, whole},
	{[]string{"serverInfo"}, object},
	{[]string{"serverInfo", "name"}, words},
	{[]string{"serverInfo", "title"}, words},
	{[]string{"serverInfo", "version"}, words},
	{[]string{"serverInfo", "description"}, words},
	{[]string{"serverInfo", "websiteUrl"}, words},
	{[]string{"serverInfo", "icons"}, unused},
	{[]string{"capabilities", "experimental"}, object},
	{[]string{"capabilities", "extensions"}, object},
	{[]string{"capabilities", "completions"}, object},
	{[]string{"capabilities", "logging"}, object},
	{[]string{"capabilities", "prompts"}, object},
	{[]string{"capabilities", "prompts", "listChanged"}, yesOrNo},
	{[]string{"capabilities", "resources"}, object},
	{[]string{"capabilities", "resources", "listChanged"}, yesOrNo},
	{[]string{"capabilities", "resources", "subscribe"}, yesOrNo},
	{[]string{"capabilities", "tools"}, object},
	{[]string{"capabilities", "tools", "listChanged"}, yesOrNo},
}

func (s member) fits(value json.RawMessage) bool {
	switch s.kind {
	case object:
		return isObject(value) || string(value) == "null"
	case words:
		return value[0] == '"' || string(value) == "null"
	case yesOrNo:
		return value[0] == 't' || value[0] == 'f' || value[0] == 'n'
	case whole:
		_, ok := wire.Integer(value)
		return ok
	}
	return string(value) == "null"
}

// instead returns what a value of a wrong type was meant for, or null.
func (s member) instead(value json.RawMessage) []byte {
	switch {
	case s.kind == object && (wire.IsEmptyList(value) || string(value) == "true"):
		return []byte("{}")
	case s.kind == words && wire.KindOf(value) == "a number": // a version, as a rule
		return []byte(strconv.Quote(string(value)))
	case s.kind == yesOrNo && string(value) == `"true"`:
		return []byte("true")
	}
	return []byte("null")
}
