package catalog

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/rawjson"
)

func TestSanitizeLeavesOrdinarySchemasAsTheyAre(t *testing.T) {
	for name, schema := range map[string]string{
		"spaces, order, numbers": `{ "type" : "object", "z": 1.50, "a": 9007199254740993, "properties": {"b": {}, "a": {}} }`,
		"escapes":                `{"description":"a \"b\" \\ \/ \n \t end","enum":["\u0007"]}`,
		"loop of references":     `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"reference to itself":    `{"$ref":"#"}`,
		"description parameter":  `{"properties":{"description":{"type":"string","enum":["\u200b"]}}}`,
		"values are exact":       `{"enum":["a\u202eb","\u001b[0m"],"default":"\u200b","pattern":"\u0000","const":"é"}`,
		"texts in a list":        `{"description":["\u001b[0m"]}`,
		"30 KB":                  `{"description":"` + strings.Repeat("d", 30<<10) + `"}`,
	} {
		if got := string(sanitize(json.RawMessage(schema))); got != schema {
			t.Errorf("%s: %s became %s", name, schema, got)
		}
	}
}

func TestSanitizeCleansAndCutsTexts(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"escaped":  {`{"description":"a\u001b[31mb\u202ec","enum":["\u202e"]}`, `{"description":"abc","enum":["\u202e"]}`},
		"raw":      {"{\"a\":{\"title\" : \"x\U000e0041\u200by\"},\"b\":1}", `{"a":{"title" : "xy"},"b":1}`},
		"two":      {`{"title":"\u0007","description":"\u0007","$comment":"\ud83d\ude00"}`, `{"title":"","description":"","$comment":"\ud83d\ude00"}`},
		"key next": {`{"title":"a\u0007","x":"b\u0007"}`, `{"title":"a","x":"b\u0007"}`},
	} {
		if got := string(sanitize(json.RawMessage(tt.in))); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	megabyte := `{"type":"object","properties":{"n":{"description":"` + strings.Repeat("d", 1<<20) + `","maximum":9007199254740993}}}`
	got := sanitize(json.RawMessage(megabyte))
	if len(got) > 5000 || !json.Valid(got) || !strings.Contains(string(got), "1044576 more characters were cut") || !strings.Contains(string(got), "9007199254740993") {
		t.Errorf("a megabyte of description became %d bytes: %.200s", len(got), got)
	}
}

func TestSanitizeLeavesOutWhatIsStillTooLarge(t *testing.T) {
	for name, schema := range map[string]string{
		"values":   `{"enum":["` + strings.Repeat("v", 1<<20) + `"]}`,
		"gigantic": `{"description":"` + strings.Repeat("v", maxScannedJSON) + `"}`,
	} {
		got := sanitize(json.RawMessage(schema))
		if len(got) > 200 || !json.Valid(got) || !strings.Contains(string(got), "is left out: it has") {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// TestADeepSchemaSpoilsOnlyItself has what makes Python's reader of JSON, the SDK's and encoding/json fail.
func TestADeepSchemaSpoilsOnlyItself(t *testing.T) {
	nested := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	for name, tt := range map[string]struct{ tool, want string }{
		"200 lists":      {`"inputSchema":{"default":` + nested("[", "]", 199) + `}`, `{"default":[[`},
		"300 lists":      {`"inputSchema":{"default":` + nested("[", "]", 300) + `}`, "the server's schema is left out: it nests more than 200 deep"},
		"1,000 objects":  {`"inputSchema":` + nested(`{"properties":`, "}", 1000), "the server's schema is left out: it nests more than 200 deep"},
		"an output":      {`"inputSchema":{"type":"object"},"outputSchema":` + nested(`{"items":`, "}", 5000), `{"type":"object"}`},
		"annotations":    {`"inputSchema":{"type":"object"},"annotations":` + nested(`{"a":`, "}", 300), `{"type":"object"}`},
		"another member": {`"inputSchema":{"type":"object"},"_meta":` + nested(`{"a":`, "}", 5000), `{"type":"object"}`},
		"20,000 lists":   {`"inputSchema":{"default":` + nested("[", "]", 20_000) + `}`, "its definition nests more than 9999 deep"},
	} {
		items, err := rawjson.Items([]byte(`[{"name":"before"},{"name":"deep",` + tt.tool + `},{"name":"after"}]`))
		if err != nil {
			t.Fatal(name, err)
		}
		b := NewBuilder(slog.New(slog.DiscardHandler))
		add(t, b, items)
		l := newList(b.Definitions(), toolFilter{})
		for _, other := range []string{"before", "after"} {
			if _, ok := l.Find(other); !ok {
				t.Errorf("%s: %q is gone", name, other)
			}
		}
		got := ""
		if tool, ok := l.Find("deep"); ok {
			got = string(tool.InputSchema)
			if len(tool.Annotations) > 0 || len(tool.OutputSchema) > 200 {
				t.Errorf("%s: annotations %.100s, output %.100s", name, tool.Annotations, tool.OutputSchema)
			}
		} else if left := b.Definitions().left; len(left) == 1 && left[0].Name == "deep" {
			got = left[0].Reason
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %.200s\nwant %s", name, got, tt.want)
		}
	}
}
