package runner

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// TestSignaturesOfThePythonTests: what tests/test_docs.py plays a host with is what the
// host says of these tools.
func TestSignaturesOfThePythonTests(t *testing.T) {
	text, err := os.ReadFile("tests/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools map[string]struct{ InputSchema, OutputSchema, About json.RawMessage }
	if err := json.Unmarshal(text, &tools); err != nil || len(tools) == 0 {
		t.Fatalf("%d tools: %v", len(tools), err)
	}
	for alias, tool := range tools {
		sig := signature.New(tool.InputSchema, tool.OutputSchema)
		said, err := json.Marshal(struct {
			*signature.Signature
			Doc string `json:"doc"`
		}{sig, sig.Doc(alias)})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := decoded(t, said), decoded(t, tool.About); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the host says\n%s\nand the tests have\n%s", alias, said, tool.About)
		}
	}
}

// decoded returns JSON whose numbers are kept as they are written.
func decoded(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
