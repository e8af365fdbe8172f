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

// shapes are the members that the SDK decodes, by method. It would refuse others in
// Go's words, and drop notifications in silence.
var shapes = map[string][]shape{
	"initialize": {
		{[]string{"protocolVersion"}, text},
		{[]string{"capabilities"}, object},
		{[]string{"capabilities", "experimental"}, object},
		{[]string{"capabilities", "extensions"}, object},
		{[]string{"capabilities", "roots"}, object},
		{[]string{"capabilities", "sampling"}, object},
		{[]string{"capabilities", "sampling", "context"}, object},
		{[]string{"capabilities", "sampling", "tools"}, object},
		{[]string{"capabilities", "elicitation"}, object},
		{[]string{"capabilities", "elicitation", "form"}, object},
		{[]string{"capabilities", "elicitation", "url"}, object},
		{[]string{"clientInfo"}, object},
		{[]string{"clientInfo", "name"}, text},
		{[]string{"clientInfo", "title"}, text},
		{[]string{"clientInfo", "version"}, text},
		{[]string{"clientInfo", "description"}, text},
		{[]string{"clientInfo", "websiteUrl"}, text},
	},
	"tools/call": {
		{[]string{"name"}, text},
		{[]string{"arguments"}, object},
		{[]string{"requestState"}, text},
		{[]string{"inputResponses"}, object},
	},
	"tools/list":               {{[]string{"cursor"}, text}},
	"resources/list":           {{[]string{"cursor"}, text}},
	"resources/templates/list": {{[]string{"cursor"}, text}},
	"prompts/list":             {{[]string{"cursor"}, text}},
	"resources/read":           {{[]string{"uri"}, text}},
	"resources/subscribe":      {{[]string{"uri"}, text}},
	"resources/unsubscribe":    {{[]string{"uri"}, text}},
	"prompts/get":              {{[]string{"name"}, text}, {[]string{"arguments"}, object}},
	"logging/setLevel":         {{[]string{"level"}, text}},
	"completion/complete": {
		{[]string{"ref"}, object},
		{[]string{"argument"}, object},
		{[]string{"context"}, object},
	},
	methodListen:    {{[]string{"notifications"}, object}},
	methodCancelled: {{[]string{"reason"}, text}},
}

// metaShapes are those that all parameters may have.
var metaShapes = []shape{
	{[]string{"_meta"}, object},
	{[]string{"_meta", "io.modelcontextprotocol/protocolVersion"}, text},
	{[]string{"_meta", "io.modelcontextprotocol/clientInfo"}, object},
	{[]string{"_meta", "io.modelcontextprotocol/clientCapabilities"}, object},
}

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
