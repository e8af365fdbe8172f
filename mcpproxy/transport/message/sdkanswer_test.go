package message

import (
	"encoding/json"
	"strings"
	"testing"

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
