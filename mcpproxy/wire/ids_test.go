package wire

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestIDsGoBackByteForByte, and the peer names a request however it writes the ID.
func TestIDsGoBackByteForByte(t *testing.T) {
	var ids IDs
	first := ids.Open(json.RawMessage(`1764115200123456789`), nil)
	second := ids.Open(json.RawMessage(`"caf\u00e9"`), json.RawMessage(`1.50`))
	if id, ok := ids.Written(first); !ok || string(id) != `1764115200123456789` {
		t.Errorf("the first is %s, %v", id, ok)
	}
	if token, ok := ids.Token(second); !ok || string(token) != `1.50` {
		t.Errorf("its token is %s, %v", token, ok)
	}
	if _, ok := ids.Token(first); ok {
		t.Error("a request without a token has one")
	}
	for written, want := range map[string]bool{`"café"`: true, `"cafe"`: false, `null`: false} {
		if ours, ok := ids.Named(json.RawMessage(written)); ok != want || ok && ours != second {
			t.Errorf("%s is %v, %v", written, ours, ok)
		}
	}
	if id, ok := ids.Close(second); !ok || string(id) != `"caf\u00e9"` {
		t.Errorf("the second is %s, %v", id, ok)
	}
	if _, ok := ids.Close(second); ok {
		t.Error("it is closed twice")
	}
}

// TestRequestsAreNamedByWhatTheirIDsMean: the peer may cancel 3 as 3.0, but not "3".
func TestRequestsAreNamedByWhatTheirIDsMean(t *testing.T) {
	var ids IDs
	ids.Open(json.RawMessage(`3`), nil)
	again := ids.Open(json.RawMessage(`3.0`), nil)
	large := ids.Open(json.RawMessage(`9007199254740993`), nil)
	half := ids.Open(json.RawMessage(`1.5`), nil)
	unknown := ids.Open(json.RawMessage(`"\ufffd"`), nil)
	for written, want := range map[string]jsonrpc.ID{
		`3`: again, `3e0`: again, `9007199254740993`: large, `1.5`: half, "\"\ufffd\"": unknown,
		`"3"`: {}, `9007199254740992`: {}, `1.50`: {}, "\"\xff\"": {}, ``: {},
	} {
		if ours, ok := ids.Named(json.RawMessage(written)); ours != want || ok != want.IsValid() {
			t.Errorf("%s is %v, %v; want %v", written, ours, ok, want)
		}
	}
}

func TestAnswersAreEncodedWithTheIDAsItIsWritten(t *testing.T) {
	failed := &jsonrpc.Error{Code: -32000, Message: "m"}
	for want, answer := range map[string]*jsonrpc.Response{
		`{"jsonrpc":"2.0","id":1.50,"result":{"a":1.0}}`:                    {Result: json.RawMessage(`{"a":1.0}`)},
		`{"jsonrpc":"2.0","id":1.50,"error":{"code":-32000,"message":"m"}}`: {Error: failed},
	} {
		if got, err := Encode(answer, json.RawMessage(`1.50`)); err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
	if got, err := Encode(&jsonrpc.Response{Result: json.RawMessage(`{"a":`)}, json.RawMessage(`1`)); err == nil || got != nil {
		t.Errorf("a result that is cut off is encoded as %s, %v", got, err)
	}
}
