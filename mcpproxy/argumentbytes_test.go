package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestWhatThePolicyReadsIsWhatIsSent, byte by byte, over each transport and in both eras
// of the protocol.
func TestWhatThePolicyReadsIsWhatIsSent(t *testing.T) {
	const given = "{ \"b\": [1, 1.50, -0, 1e2, 9007199254740993, 1e400],\n \"a\": \"<&> caf\u00e9 \u2028 \\u0061\\/ \\ud83d\\ude00\", \"\U0001f600\": null, \"c\": {} }"
	const want = `{"b":[1,1.50,-0,1e2,9007199254740993,1e400],"a":"<&> caf\u00e9 \u2028 a/ \ud83d\ude00","\ud83d\ude00":null,"c":{}}`
	check := func(t *testing.T, s config.Server, wire func() string) {
		p := proxyFor(t, Options{}, s)
		var asked *policy.Ask
		r := CallRequest{Server: "fake", Tool: "echo", Arguments: json.RawMessage(given), Run: policyOf(t, "[default]\nask = '*'").NewEnforcer()}
		if _, err := p.Call(t.Context(), r); !errors.As(err, &asked) || strings.Contains(wire(), "tools/call") {
			t.Fatalf("error %v; sent %s", err, wire())
		}
		if string(asked.Arguments) != want {
			t.Errorf("the policy reads %s", asked.Arguments)
		}
		r.Allowed = func(a *policy.Ask) bool { return bytes.Equal(a.Arguments, asked.Arguments) }
		if _, err := p.Call(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(wire(), `"arguments":`+want) {
			t.Errorf("on the wire is\n%s\nwant\n%s", wire(), want)
		}
	}
	t.Run("stdio 2025", func(t *testing.T) {
		lines := filepath.Join(t.TempDir(), "lines")
		check(t, fake(t, "FAKE_LINES", lines), func() string {
			text, _ := os.ReadFile(lines)
			return string(text)
		})
	})
	for name, h := range map[string]http.Handler{
		"http 2026": streamable(&noteBook{}, nil), "http 2025": legacyOnly(streamable(&noteBook{}, nil)), "sse": sseHandler(&noteBook{}),
	} {
		t.Run(name, func(t *testing.T) {
			var bodies noteBook
			kind := config.HTTP
			if name == "sse" {
				kind = config.SSE
			}
			s := web(t, kind, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies.add(string(body))
				r.Body = io.NopCloser(bytes.NewReader(body))
				h.ServeHTTP(w, r)
			}))
			check(t, s, func() string {
				bodies.mu.Lock()
				defer bodies.mu.Unlock()
				return strings.Join(bodies.all, "\n")
			})
		})
	}
}

func TestArgumentsThatServersReadDifferentlyAreNotSent(t *testing.T) {
	lines := filepath.Join(t.TempDir(), "lines")
	p := proxyFor(t, Options{}, fake(t, "FAKE_LINES", lines))
	for args, want := range map[string]string{
		`{"amount":1,"amount":1000}`:           `calling tool "echo" of server "fake": the arguments cannot be sent: the name "amount" is there twice`,
		`{"a":[{"amount":1,"\u0061mount":2}]}`: `the name "amount" is there twice`,
		`{"a":"\udce9"}`:                       `half of a surrogate pair`,
		"{\"a\":\"\xe9\"}":                     `not UTF-8`,
		`{"a":NaN}`:                            `the arguments are not a JSON object`,
		`{"a":1}{"a":2}`:                       `the arguments are not a JSON object`,
		strings.Repeat(`{"a":`, 100_000) + `1`: `nests more than`,
	} {
		_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "echo", Arguments: json.RawMessage(args)})
		mcptest.WantError(t, err, want)
	}
	if _, err := os.Stat(lines); err == nil {
		t.Error("the server was started for them")
	}
}
