package redact

import (
	"encoding/json"
	"errors"

	"github.com/toolcell/toolcell/internal/rawjson"
)

// errLeft is the error of a text that cannot be redacted and stay JSON.
var errLeft = errors.New("it holds a secret of the server's entry that cannot be taken out, so it is not shown")

// JSON returns raw without the secrets, in strings as they read when decoded and in
// numbers, which become strings; the rest stays as it is, byte for byte. It returns an error if raw is not
// JSON, or if a secret is left: one that is itself a piece of JSON, across values.
func (h *Redactor) JSON(raw json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is not JSON")
	}
	out := rawjson.Edit(raw, func(_ []byte, value string) string { return h.Text(value) })
	if hidden := h.Text(string(out)); hidden != string(out) {
		return nil, errLeft
	}
	return out, nil
}
