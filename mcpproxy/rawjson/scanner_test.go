package rawjson

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzScan checks that the scanner accepts exactly JSON, except for values that
// nest too deeply.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+7,true,false,null,"x\u00e9\\\"\n"],"b":{}}`, ` [ ] `, `{"a":1,}`, `[1,]`, `[,1]`, `{"a"}`, `{1:2}`, `01`, `1.`, `1e`, `-`, `.5`, `+1`,
		`"\u12g4"`, `"\x"`, `"`, `"\`, `"\u12`, "\"a\x01\"", "\"caf\xe9\"", `tru`, `nul`, `{}{}`, `1 2`, ``, ` `, `[[[[[[[[[]]]]]]]]]`, "\"12345678\x1f\"",
		`"` + strings.Repeat("1234567", 9) + `\\"`, `"` + strings.Repeat("é", 40) + `"`, "\u00a01", "[1\v]", `"` + strings.Repeat(`\"`, 20) + `"`, "\"\x7f\x80\xff\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := Scanner{Text: text}
		ok := s.value(1000)
		s.SkipSpace()
		if ok = ok && s.Offset == len(text); ok != json.Valid(text) && strings.Count(string(text), "[")+strings.Count(string(text), "{") < 1000 {
			t.Errorf("takes %.200q: %v", text, ok)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	text, _ := json.Marshal(strings.Repeat("2026-11-21 10:00:00 \"GET /index.html\" 200 5120 ms=12\n", 1<<20/53))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if s := (Scanner{Text: text}); !s.value(1) {
			b.Fatal("it is no JSON")
		}
	}
}
