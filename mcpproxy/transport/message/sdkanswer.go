package message

import (
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	json2 "encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	if has := wire.Member(result, "capabilities"); has != nil && !isObject(has) && !wire.IsEmptyList(has) && string(has) != "null" {
		return nil, wrong("its capabilities", "an object", has)
	}
	var last jsontext.Pointer
	for range maxReplaced {
		err := json2.Unmarshal(result, new(shown), anything, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		odd, ok := errors.AsType[*json2.SemanticError](err)
		if !ok || odd.JSONPointer == last { // its name is there twice, and only the last one can be replaced
			break
		}
		last = odd.JSONPointer
		path := slices.Collect(odd.JSONPointer.Tokens())
		for wire.Member(result, path...) == nil { // it is an item of a list
			path = path[:len(path)-1]
		}
		result = wire.Replace(result, instead(wire.Member(result, path...), odd.GoType.Kind()), path...)
	}
	return result, nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// A shown has the members of a handshake that a server can do without.
type shown struct {
	Meta struct {
		ServerInfo mcp.Implementation `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
	ServerInfo   mcp.Implementation     `json:"serverInfo"`
	Capabilities mcp.ServerCapabilities `json:"capabilities"`
	Instructions string                 `json:"instructions"`
	ResultType   string                 `json:"resultType"`
	CacheScope   string                 `json:"cacheScope"`
	TTLMs        int                    `json:"ttlMs"`
}

// anything passes over what may be of any kind: a server can send many such values.
var anything = json2.WithUnmarshalers(json2.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *any) error { return d.SkipValue() }))

// maxReplaced bounds the members of a wrong type: each is found by reading all of them.
const maxReplaced = 50

// instead returns what a value is replaced with that should be of another kind: what it was
// meant for, or null.
func instead(value json.RawMessage, should reflect.Kind) []byte {
	switch {
	case (should == reflect.Struct || should == reflect.Map) && (wire.IsEmptyList(value) || string(value) == "true"):
		return []byte("{}")
	case should == reflect.String && wire.KindOf(value) == "a number": // a version, as a rule
		return []byte(strconv.Quote(string(value)))
	case should == reflect.Bool && string(value) == `"true"`:
		return []byte("true")
	}
	return []byte("null")
}
