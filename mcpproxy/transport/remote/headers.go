package remote

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// FirstWithHeaders is the protocol version from which requests over HTTP repeat
// in headers what is in their body, so that proxies need not read it.
const FirstWithHeaders = "2026-07-28"

// parameterHeaders sets a header for each argument of a call whose schema names one.
// The SDK would only for tools that this session has listed, and most are known
// from an earlier one.
func parameterHeaders(h http.Header, c *message.Call) {
	arguments, schema := c.Tool()
	if h.Get(versionKey) < FirstWithHeaders || !strings.Contains(string(schema), "x-mcp-header") {
		return
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(arguments, &args) == nil {
		argumentHeaders(h, schema, args)
	}
}

// argumentHeaders sets a header for each argument whose schema names one, at
// any depth.
func argumentHeaders(h http.Header, schema json.RawMessage, args map[string]json.RawMessage) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return
	}
	for name, property := range s.Properties {
		raw, given := args[name]
		if !given || rawjson.IsNull(raw) {
			continue
		}
		var p struct {
			Header string `json:"x-mcp-header"`
		}
		if json.Unmarshal(property, &p) == nil && config.IsHeaderName(p.Header) {
			if text, ok := argumentText(raw); ok {
				h.Set("Mcp-Param-"+p.Header, headerText(text))
			}
		}
		var nested map[string]json.RawMessage
		if json.Unmarshal(raw, &nested) == nil {
			argumentHeaders(h, property, nested)
		}
	}
}

// argumentText writes a string, a boolean or a whole number as headers have
// them; nothing else may be in one.
func argumentText(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), true
		}
	}
	return "", false
}

// headerText encodes what cannot be in a header as it is.
func headerText(s string) string {
	unsafe := strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) ||
		s != strings.TrimSpace(s) || strings.HasPrefix(s, "=?base64?")
	if unsafe {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return s
}
