package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestNoSecretStaysInJSON(t *testing.T) {
	r := New(config.Server{Env: map[string]string{
		"KEY": "s3cret-key", "PIN": "12345678", "ODD": `a"b\c,d:{e}`, "LINES": "first\nsecond", "LOGIN": `{"user":"me","pass":"s3cret"}`, "CUT": `left","right`,
	}})
	for _, tt := range []struct{ name, raw, want string }{
		{"part of a number", ` {"a" : [1.50, 9123456789, true, null, "\u0061"]} `, ` {"a" : [1.50, "9[PIN]9", true, null, "\u0061"]} `},
		{"untouched", ` {"n" : 9007199254740993, "a": ["\u0061<&>", "", -1e5] }`, ` {"n" : 9007199254740993, "a": ["\u0061<&>", "", -1e5] }`},
		{"a string", `{"error":"bad key s3cret-key"}`, `{"error":"bad key [KEY]"}`},
		{"a name", `{"s3cret-key":1}`, `{"[KEY]":1}`},
		{"escaped in its own way", `["s\u0033cret-key", "\u0073\u0033cret\u002dkey"]`, `["[KEY]", "[KEY]"]`},
		{"a number", `{"pin":12345678,"more":-12345678.5}`, `{"pin":"[PIN]","more":"-[PIN].5"}`},
		{"characters of JSON", `{"odd":"got a\"b\\c,d:{e}"}`, `{"odd":"got [ODD]"}`},
		{"several lines", `["first\nsecond","first\u000asecond"]`, `["[LINES]","[LINES]"]`},
		{"JSON in a string", `{"text":"{\"odd\": \"a\\\"b\\\\c,d:{e}\", \"pin\": 12345678}"}`, `{"text":"{\"odd\": \"[ODD]\", \"pin\": [PIN]}"}`},
		{"the rest keeps its characters", `{"error":"<s3cret-key> & ü"}`, `{"error":"<[KEY]> & ü"}`},
	} {
		got, err := r.JSON(json.RawMessage(tt.raw))
		if err != nil || string(got) != tt.want || !json.Valid(got) {
			t.Errorf("%s: JSON(%s) = %s, %v; want %s", tt.name, tt.raw, got, err, tt.want)
		}
	}
	for name, raw := range map[string]string{
		"a secret that is an object": `{"echo":{"user":"me","pass":"s3cret"}}`,
		"a secret across two values": `{"echo":["left","right"]}`,
	} {
		got, err := r.JSON(json.RawMessage(raw))
		if len(got) > 0 {
			t.Errorf("%s: JSON(%s) = %s", name, raw, got)
		}
		mcptest.WantError(t, err, "a secret of the server's entry")
	}
	_, err := r.JSON(json.RawMessage(`{"s3cret-key`))
	mcptest.WantError(t, err, "not JSON")
	if strings.Contains(err.Error(), "s3cret-key") {
		t.Errorf("the error has the secret: %v", err)
	}
}

// FuzzJSON: it is JSON without the secret, or an error.
func FuzzJSON(f *testing.F) {
	f.Add("s3cret-key", `{"error":"s3cret-key"}`)
	f.Add("12345678", `[12345678]`)
	f.Add(`left","right`, `["left","right"]`)
	f.Add(`quoted"value`, `["quoted\"value", "quoted\u0022value"]`)
	f.Add("q\xa1\xa1\xa1\xa1\xa1\xa1", "[\"q\xce\xce\xce\xce\xce\xce\"]") // both are the same once it is Unicode
	f.Fuzz(func(t *testing.T, secret, raw string) {
		r := New(config.Server{Env: map[string]string{"K": secret}})
		got, err := r.JSON(json.RawMessage(raw))
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("JSON(%s) = %s, which is not JSON", raw, got)
		}
		if r.Text(string(got)) != string(got) {
			t.Fatalf("JSON(%s) = %s, which has the secret %q", raw, got, secret)
		}
		if r.Text(raw) == raw && utf8.ValidString(raw) && !strings.Contains(raw, `\`) && string(got) != raw {
			t.Fatalf("JSON(%s) = %s, though there was nothing to hide", raw, got)
		}
	})
}
