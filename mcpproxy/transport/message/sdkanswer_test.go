package message

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHandshakesAreReadWhateverIsOddAboutThem: what a server can be used without is left
// out, and else the error is in words.
func TestHandshakesAreReadWhateverIsOddAboutThem(t *testing.T) {
	for result, want := range map[string]string{
		`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"a","version":"1"}}`: "",
		`{"protocolVersion":"v","capabilities":[]}`:                                               "",
		`{"protocolVersion":"v","capabilities":null,"serverInfo":[]}`:                             "",
		`{"protocolVersion":"v","capabilities":{"tools":[],"prompts":true,"resources":"yes"}}`:    "",
		`{"protocolVersion":"v","capabilities":{"tools":{"listChanged":"true"},"logging":5}}`:     "",
		`{"protocolVersion":"v","capabilities":{"experimental":[],"extensions":[1]}}`:             "",
		`{"protocolVersion":"v","serverInfo":{"name":5,"version":1.0,"title":{},"icons":"x"}}`:    "",
		`{"protocolVersion":"v","serverInfo":"name","instructions":["a"],"_meta":[],"ttlMs":1.5}`: "",
		`{"protocolVersion":"v","serverInfo":{"icons":[{"src":"a"},{"src":5}],"version":"1"}}`:    "",
		`{"protocolVersion":"v","_meta":{"io.modelcontextprotocol/serverInfo":{"name":[]}}}`:      "",
		`{"protocolVersion":"v","_meta":"x","resultType":1,"cacheScope":[]}`:                      "",
		`[]`:                    "",
		`{"protocolVersion":5}`: "the server's answer cannot be read: its protocolVersion must be text, not a number",
		`{"protocolVersion":"v","capabilities":"all"}`: "the server's answer cannot be read: its capabilities must be an object, not text",
		`{"supportedVersions":"v"}`:                    "the server's answer cannot be read: its supportedVersions must be a list of texts",
		`"hello"`:                                      "the server's answer cannot be read: its result must be an object, not text",
		`null`:                                         "the server's answer cannot be read: its result must be an object, not null",
	} {
		got, err := tidyResult(MethodInitialize, json.RawMessage(result))
		if err != nil || want != "" {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", result, err, want)
			}
			continue
		}
		if err := json.Unmarshal(got, &mcp.InitializeResult{}); err != nil {
			t.Errorf("%s became %s: %v", result, got, err)
		}
		if err := json.Unmarshal(got, &mcp.DiscoverResult{}); err != nil {
			t.Errorf("%s became %s: %v", result, got, err)
		}
	}
}

// TestOddMembersBecomeWhatTheyWereMeantFor, where that is plain.
func TestOddMembersBecomeWhatTheyWereMeantFor(t *testing.T) {
	for result, want := range map[string]string{
		`{"capabilities":{"tools":[],"prompts":true,"resources":"yes"}}`: `{"capabilities":{"tools":{},"prompts":{},"resources":null}}`,
		`{"capabilities":{"experimental":[ ],"extensions":[1]}}`:         `{"capabilities":{"experimental":{},"extensions":null}}`,
		`{"capabilities":{"tools":{"listChanged":"true"}}}`:              `{"capabilities":{"tools":{"listChanged":true}}}`,
		`{"capabilities":{"tools":{"listChanged":"yes"}}}`:               `{"capabilities":{"tools":{"listChanged":null}}}`,
		`{"serverInfo":{"name":[],"version":1.0}}`:                       `{"serverInfo":{"name":null,"version":"1.0"}}`,
		`{"ttlMs":[],"serverInfo":"name"}`:                               `{"ttlMs":null,"serverInfo":null}`,
	} {
		if got, err := tidyResult(MethodDiscover, json.RawMessage(result)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", result, got, err)
		}
	}
}

// TestAnswersForTheSDKAreTidied only in a handshake, and bounded in how deep they nest.
func TestAnswersForTheSDKAreTidied(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting) + `}`
	for _, tt := range []struct{ method, result, want, failed string }{
		{MethodInitialize, `[]`, `{}`, ""},
		{MethodDiscover, `[]`, `{}`, ""},
		{MethodDiscover, `"hello"`, "", "the server's answer cannot be read: its result must be an object, not text"},
		{"ping", `[]`, `[]`, ""},
		{"ping", `"hello"`, `"hello"`, ""},
		{"tools/list", `{"capabilities":[]}`, `{"capabilities":[]}`, ""},
		{"tools/list", deep, "", "the server's answer cannot be read: it nests deeper than 1000"},
		{"", deep, deep, ""}, // of no request that waits
	} {
		answer := AnswerTo(idOf(t, 1.0), tt.method, json.RawMessage(tt.result))
		var failed string
		if said, ok := errors.AsType[*jsonrpc.Error](answer.Error); ok {
			failed = said.Message
		}
		if string(answer.Result) != tt.want || failed != tt.failed || answer.ID != idOf(t, 1.0) {
			t.Errorf("%s %.60s: %.60s, %s", tt.method, tt.result, answer.Result, failed)
		}
	}
}

// TestOddHandshakesTakeLittleWork, however much a server sends of what is of no interest, or
// sends twice.
func TestOddHandshakesTakeLittleWork(t *testing.T) {
	for name, result := range map[string]string{
		"values of any kind": `{"protocolVersion":"v","capabilities":{"experimental":{"a":[` + strings.Repeat(`{},`, 10_000) + `{}]}}}`,
		"a member twice":     `{"protocolVersion":"v","instructions":5,"instructions":"x"}`,
	} {
		if n := testing.AllocsPerRun(1, func() { _, _ = tidyResult(MethodInitialize, json.RawMessage(result)) }); n > 150 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
