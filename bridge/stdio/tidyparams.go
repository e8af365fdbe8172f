package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/wire"
)

// shape is what a member of parameters has to be.
type shape struct {
	path []string
	kind byte // as the first character of its JSON
}

const (
	object = '{'
	text   = '"'
)

// members are shapes of one kind, given as paths: names with a space between them.
func members(kind byte, paths ...string) (all []shape) {
	for _, path := range paths {
		all = append(all, shape{strings.Fields(path), kind})
	}
	return all
}

// shapes are the members that the SDK decodes, by method. It would refuse others in
// Go's words, and drop notifications in silence.
var shapes = map[string][]shape{
	"initialize": append(members(object, "clientInfo", "capabilities", "capabilities experimental",
		"capabilities extensions", "capabilities roots", "capabilities sampling", "capabilities sampling context",
		"capabilities sampling tools", "capabilities elicitation", "capabilities elicitation form", "capabilities elicitation url"),
		members(text, "protocolVersion", "clientInfo name", "clientInfo title", "clientInfo version",
			"clientInfo description", "clientInfo websiteUrl")...),
	"tools/call":               append(members(object, "arguments", "inputResponses"), members(text, "name", "requestState")...),
	"tools/list":               members(text, "cursor"),
	"resources/list":           members(text, "cursor"),
	"resources/templates/list": members(text, "cursor"),
	"prompts/list":             members(text, "cursor"),
	"resources/read":           members(text, "uri"),
	"resources/subscribe":      members(text, "uri"),
	"resources/unsubscribe":    members(text, "uri"),
	"prompts/get":              append(members(object, "arguments"), members(text, "name")...),
	"logging/setLevel":         members(text, "level"),
	"completion/complete":      members(object, "ref", "argument", "context"),
	methodListen:               members(object, "notifications"),
	methodCancelled:            members(text, "reason"),
}

// metaShapes are those that all parameters may have.
var metaShapes = append(
	members(object, "_meta", "_meta io.modelcontextprotocol/clientInfo",
		"_meta io.modelcontextprotocol/clientCapabilities"),
	members(text, "_meta io.modelcontextprotocol/protocolVersion")...)

// tidy returns the parameters of a method as the SDK can read them: an empty list is
// the empty object of some languages, and null is nothing. Anything else of a wrong type
// is an error in words.
func tidy(method string, params json.RawMessage) (json.RawMessage, error) {
	params = bytes.TrimSpace(params)
	switch {
	case len(params) == 0 || string(params) == "null":
		return nil, nil
	case wire.IsEmptyList(params):
		return json.RawMessage("{}"), nil
	case params[0] != '{':
		return nil, fmt.Errorf("params must be an object, not %s", wire.KindOf(params))
	}
	all := shapes[method]
	if bytes.Contains(params, []byte(`"_meta"`)) {
		all = append(slices.Clip(metaShapes), all...)
	}
	for _, s := range all {
		value := wire.Member(params, s.path...)
		switch {
		case value == nil || value[0] == s.kind || string(value) == "null":
		case s.kind == object && wire.IsEmptyList(value):
			params = wire.Replace(params, []byte("{}"), s.path...)
		case s.kind == object:
			return nil, fmt.Errorf("%q must be an object, not %s", strings.Join(s.path, "."), wire.KindOf(value))
		default:
			return nil, fmt.Errorf("%q must be text, not %s", strings.Join(s.path, "."), wire.KindOf(value))
		}
	}
	return params, nil
}
