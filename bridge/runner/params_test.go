package runner

import (
	"encoding/base64"
	"encoding/json"
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
	for _, bad := range []string{`[]`, `5`, `{"server":1}`, `{"limit":1.5}`, `{"data":"?"}`, `{"data":"AQI="`, `{"data":"\u0041QI="}`, `{"data":"` + strings.Repeat("A", decodedAtOnce-4) + "AA==AAAA" + `"}`, `{"server":"` + strings.Repeat("x", maxParam) + `"}`, `{"server"`} {
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
