package runner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestParamsAreNotCopied, but for short ones.
func TestParamsAreNotCopied(t *testing.T) {
	raw := json.RawMessage(`{"server":"s\u0065rver","limit":5,"drawn":true,"data":"AQI=","unknown":[1],"arguments":{"a":[1,2]},"named":null}`)
	p, err := readParams(t.Context(), raw)
	if err != nil || p.Server != "server" || p.Limit != 5 || !p.Drawn || string(p.Data) != "\x01\x02" || string(p.Arguments) != `{"a":[1,2]}` {
		t.Fatalf("got %+v, %v", p, err)
	}
	if at := strings.Index(string(raw), `{"a"`); &p.Arguments[0] != &raw[at] {
		t.Error("the arguments are a copy")
	}
	for _, bad := range []string{`[]`, `5`, `{"server":1}`, `{"server":1,"tool":"t"}`, `{"limit":1.5}`, `{"data":"?"}`, `{"data":"AQI="`, `{"data":"\u0041QI="}`, `{"data":"` + strings.Repeat("A", decodedAtOnce-4) + "AA==AAAA" + `"}`, `{"server":"` + strings.Repeat("x", maxParam) + `"}`, `{"server"`} {
		if p, err := readParams(t.Context(), json.RawMessage(bad)); err == nil {
			t.Errorf("%.40s gave %+v", bad, p)
		}
	}
	long := strings.Repeat("AQID", decodedAtOnce/4) + "AQI="
	if p, err := readParams(t.Context(), json.RawMessage(`{"data":"`+long+`"}`)); err != nil || base64.StdEncoding.EncodeToString(p.Data) != long {
		t.Errorf("a long picture has %d bytes: %v", len(p.Data), err)
	}
	// save_tool reads it by itself and says how long it may be.
	if p, err := readParams(t.Context(), json.RawMessage(`{"source":"`+strings.Repeat("x", maxParam)+`"}`)); err != nil || p.Source != "" {
		t.Errorf("a long source has %d bytes: %v", len(p.Source), err)
	}
	for _, none := range []string{``, `null`, ` {} `} {
		if _, err := readParams(t.Context(), json.RawMessage(none)); err != nil {
			t.Errorf("%q: %v", none, err)
		}
	}
}

// TestWrongTypesAreThoseOfPython, which the code and its model know.
func TestWrongTypesAreThoseOfPython(t *testing.T) {
	for params, want := range map[string]CallError{
		`{"server":{"a":1}}`:              {Kind: "TypeError", Message: "server must be a str, not dict"},
		`{"server":["a"]}`:                {Kind: "TypeError", Message: "server must be a str, not list"},
		`{"server":true}`:                 {Kind: "TypeError", Message: "server must be a str, not bool"},
		`{"server":false}`:                {Kind: "TypeError", Message: "server must be a str, not bool"},
		`{"server":1.5}`:                  {Kind: "TypeError", Message: "server must be a str, not float"},
		`{"server":1e3}`:                  {Kind: "TypeError", Message: "server must be a str, not float"},
		`{"server":-1}`:                   {Kind: "TypeError", Message: "server must be a str, not int"},
		`{"limit":"5"}`:                   {Kind: "TypeError", Message: "limit must be an int, not str"},
		`{"offset":1.5}`:                  {Kind: "TypeError", Message: "offset must be an int, not float"},
		`{"limit":10000000000000000000}`:  {Kind: "ValueError", Message: "limit is out of range"},
		`{"offset":10000000000000000000}`: {Kind: "ValueError", Message: "offset is out of range"},
		`{"derived":1}`:                   {Kind: "TypeError", Message: "derived must be a bool, not int"},
		`{"data":1234}`:                   {Kind: "TypeError", Message: "data must be a str, not int"},
		`{"data":["AQI="]}`:               {Kind: "TypeError", Message: "data must be a str, not list"},
		`{"data":"AQI"}`:                  {Kind: "ValueError", Message: "data is not base64"},
	} {
		_, err := readParams(t.Context(), json.RawMessage(params))
		if e, ok := errors.AsType[*CallError](err); !ok || *e != want {
			t.Errorf("%s: %+v, want %+v", params, err, want)
		}
	}
}

// TestLastPictureCounts, as of all parameters that come twice.
func TestLastPictureCounts(t *testing.T) {
	for params, want := range map[string]string{
		`{"data":"AAAA","data":"AQI="}`: "\x01\x02",
		`{"data":"AAAA","data":null}`:   "",
		`{"data":null}`:                 "",
	} {
		if p, err := readParams(t.Context(), json.RawMessage(params)); err != nil || string(p.Data) != want {
			t.Errorf("%s: %q, %v", params, p.Data, err)
		}
	}
}

// TestReadingParamsEndsAsItsContextSays: what they are is not known then.
func TestReadingParamsEndsAsItsContextSays(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client hung up")
	cancel(why)
	long := `{"unknown":[` + strings.Repeat("1,", 1<<20) + `1],"data":"` + strings.Repeat("AAAA", decodedAtOnce) + `"}`
	for _, params := range []string{`{"server":"up"}`, long} {
		if _, err := readParams(ctx, json.RawMessage(params)); !errors.Is(err, why) {
			t.Errorf("%.20s: %v", params, err)
		}
	}
}

// TestDetailOfDocumentation: anything unknown is a summary.
func TestDetailOfDocumentation(t *testing.T) {
	for detail, want := range map[string]bool{"full": true, "schema": true, "summary": false, "": false, "FULL": false} {
		if got := (Params{Detail: detail}).Full(); got != want {
			t.Errorf("%q is full: %v", detail, got)
		}
	}
}
