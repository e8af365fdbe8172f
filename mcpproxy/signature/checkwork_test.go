package signature

import (
	"strings"
	"testing"
)

func TestDeepValuesAreNotChecked(t *testing.T) {
	schema := `{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":["string","array"],"items":{"$ref":"#/$defs/x"}}}}`
	for depth, want := range map[int]string{
		maxCheckDepth:     "must be a string or an array, not int",
		maxCheckDepth + 1: "",
	} {
		_, named := given(t, `[]`, `{"a":`+deep("[", "1", "]", depth)+`}`)
		_, err := signed(schema).Bind("f", nil, named)
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d deep: %v, want %q", depth, err, want)
		}
	}
}

// TestChecksEndWithTheirWork: a wrong value that comes after it is for the server.
func TestChecksEndWithTheirWork(t *testing.T) {
	const (
		size   = 1 << 20 // of a long text
		often  = maxCheckWork / size
		steps  = maxCheckWork / checkStep
		filled = 5000 // needed members that the server fills in
	)
	branches := func(n int, of string) string { return `{"anyOf":[` + listed(n, of) + `]}` }
	counting := `{"required":["x"],"properties":{"y":{"enum":[` + listed(maxLiterals, "1") + `]}}}`
	// Each of these takes the work of all its needed members.
	fill := `{"items":{"properties":{` + counted(filled, `"p%d":{"default":1}`, ",") + `},"required":[` + counted(filled, `"p%d"`, ",") + `,"z"]}}`
	full := maxCheckWork / (filled * checkStep)
	text := func(size int, with string) string { return `"` + strings.Repeat("x", size) + with + `"` }
	enum := `{"enum":["` + strings.Repeat("y", 3000) + `"]}`
	for _, tt := range []struct {
		name, schema, value string
		want                string // "" if the value is let through
	}{
		{"as many values", `{"items":{"enum":[` + listed(maxLiterals, `"y"`) + `]}}`, `[` + listed(steps/300, `"y"`) + `,1]`, "which must be one of"},
		{"more values", `{"items":{"enum":[` + listed(maxLiterals, `"y"`) + `]}}`, `[` + listed(steps/200, `"y"`) + `,1]`, ""},
		{"long texts without escapes", branches(300, enum), text(50_000, ""), "which must be one of"},
		{"long texts with escapes", branches(300, enum), text(50_000, `\n`), ""},
		{"as many objects", `{"enum":[` + listed(often/3, `{"x":1}`) + `]}`, object(maxCompared), "which must be one of"},
		{"more objects", `{"enum":[` + listed(often, `{"x":1}`) + `]}`, object(maxCompared), ""},
		{"as many lists", branches(often-1, `{"items":{"type":"integer"}}`), `["x",` + text(size, "") + `]`, "a[0] must be an integer"},
		{"more lists", branches(often+1, `{"items":{"type":"integer"}}`), `["x",` + text(size, "") + `]`, ""},
		{"as many mappings", branches(often-1, `{"properties":{"x":{"type":"integer"}}}`), `{"x":"y","z":` + text(size, "") + `}`, "a.x must be an integer"},
		{"more mappings", branches(often+1, `{"properties":{"x":{"type":"integer"}}}`), `{"x":"y","z":` + text(size, "") + `}`, ""},
		{"as many members", counting, `{` + listed(steps/300, `"y":1`) + `}`, "a lacks 'x'"},
		{"more members", counting, `{` + listed(steps/200, `"y":1`) + `}`, ""},
		{"as many needed members", fill, `[` + listed(full-1, `{"z":1}`) + `,{}]`, "lacks 'z'"},
		{"more needed members", fill, `[` + listed(full, `{"z":1}`) + `,{}]`, ""},
	} {
		_, named := given(t, `[]`, `{"a":`+tt.value+`}`)
		_, err := signed(of(tt.schema)).Bind("f", nil, named)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %.300v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestWhatNeedsNoCheckTakesNoWork, so that the arguments after it are checked.
func TestWhatNeedsNoCheckTakesNoWork(t *testing.T) {
	const steps = maxCheckWork / checkStep
	for name, tt := range map[string]struct{ schema, value string }{
		"a long list":    {`{"type":"array"}`, `[` + listed(steps, "1") + `]`},
		"a long mapping": {`{"type":"object"}`, `{` + listed(steps, `"x":1`) + `}`},
	} {
		_, named := given(t, `[]`, `{"a":`+tt.value+`,"b":"x"}`)
		_, err := signed(`{"properties":{"a":`+tt.schema+`,"b":{"type":"integer"}}}`).Bind("f", nil, named)
		if err == nil || err.Error() != "f(): b must be an integer, not str" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
