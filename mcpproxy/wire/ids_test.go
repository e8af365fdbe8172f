package wire

import (
	"encoding/json"
	"testing"
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
