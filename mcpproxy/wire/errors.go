package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// ErrorOf reads the error of an answer, whatever it is: some peers write a text, or a
// code that is not a number. Its message is empty only if the error is an empty text.
func ErrorOf(raw json.RawMessage) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError}
	if s, isText := rawjson.Text(raw); isText {
		e.Message = s
	}
	code := Member(raw, "code")
	if s, isText := rawjson.Text(code); isText {
		code = json.RawMessage(s)
	}
	if i, ok := Integer(code); ok {
		e.Code = i
	}
	message, data := Member(raw, "message"), Member(raw, "data")
	e.Data = data
	if s, isText := rawjson.Text(message); isText {
		e.Message = s
	}
	for _, said := range []json.RawMessage{message, data, raw} {
		if empty := len(said) == 0 || rawjson.IsNull(said) || string(said) == `""`; e.Message == "" && !empty {
			e.Message = string(said) // better than nothing
		}
	}
	return e
}
