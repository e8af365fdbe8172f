package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"golang.org/x/net/http/httpguts"
)

// FirstWithHeaders is the protocol version from which requests over HTTP repeat
// part of their body in headers, for proxies.
const FirstWithHeaders = "2026-07-28"

// parameterHeaders sets a header for each argument of a call whose schema names one.
// The SDK would only for tools that this session has listed, and most are known
// from an earlier one.
func parameterHeaders(ctx context.Context, h http.Header, c *message.Call) error {
	if h.Get(versionKey) < FirstWithHeaders || !strings.Contains(string(c.Schema), "x-mcp-header") {
		return nil
	}
	argumentHeaders(ctx, h, c.Schema, c.Arguments)
	return context.Cause(ctx)
}

// A headerNode is the part of a schema that names headers for arguments.
type headerNode struct {
	Header     string                 `json:"x-mcp-header"`
	Properties map[string]*headerNode `json:"properties"`
}

// argumentHeaders sets a header for each argument whose schema names one, at any depth.
// Both are read once: code may nest megabytes as deep as the schema does. It ends early with
// ctx.
func argumentHeaders(ctx context.Context, h http.Header, schema, arguments json.RawMessage) {
	var top headerNode
	var odd *json.UnmarshalTypeError // true or false in place of a schema, say
	if err := json.Unmarshal(schema, &top); err != nil && !errors.As(err, &odd) {
		return
	}
	top.setHeaders(h, &rawjson.Scanner{Text: arguments, Context: ctx})
}

func (n *headerNode) setHeaders(h http.Header, s *rawjson.Scanner) {
	for quoted := range s.Object {
		var name string
		if len(quoted) <= maxArgumentName {
			_ = json.Unmarshal(quoted, &name)
		}
		property := n.Properties[name]
		if s.SkipSpace(); property != nil && len(property.Properties) > 0 && s.Offset < len(s.Text) && s.Text[s.Offset] == '{' {
			property.setHeaders(h, s)
			continue
		}
		raw := s.Value()
		if property != nil && raw != nil && httpguts.ValidHeaderFieldName(property.Header) && len(raw) <= maxHeaderValue && !rawjson.IsNull(raw) {
			if text, ok := argumentText(raw); ok {
				h.Set("Mcp-Param-"+property.Header, headerText(text))
			}
		}
	}
}

// Bounds on arguments in headers, in bytes of JSON. Servers take no longer ones.
const (
	maxArgumentName = 2 << 10
	maxHeaderValue  = 64 << 10
)

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
