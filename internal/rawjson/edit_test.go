package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestEditPassesTokensWithTheirMembers(t *testing.T) {
	text := ` {"a" : "x", "b":{"c":[1.50,"y",{"d":null}],"e": true}, "f":"\u0061" , "g":[[]],"":{}} `
	want := "-a \"a\"x -b -c -1.50 -y -d \"d\"null -e \"e\"true -f \"f\"a -g - "
	var got bytes.Buffer
	out := Edit([]byte(text), func(name []byte, value string) string {
		if name == nil {
			name = []byte("-")
		}
		fmt.Fprintf(&got, "%s%s ", name, value)
		return value
	})
	if got.String() != want || string(out) != text {
		t.Errorf("got  %s\nwant %s\nas %s", got.String(), want, out)
	}
	out = Edit([]byte(text), func(name []byte, value string) string {
		if string(name) == `"a"` || value == "d" || value == "1.50" {
			return "new"
		}
		return value
	})
	if want := ` {"a" : "new", "b":{"c":["new","y",{"new":null}],"e": true}, "f":"\u0061" , "g":[[]],"":{}} `; string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func TestEditLeavesWhatIsNotJSON(t *testing.T) {
	for _, text := range []string{``, `x`, `["a",x]`, `["a",tru]`, `["a",-]`, `["a","b`, `{"a":1.}`, `{"a":"\x"}`, `["a"];`} {
		if got := Edit([]byte(text), func([]byte, string) string { return "new" }); string(got) != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

// FuzzEdit: all but the tokens stays, and what replaces each makes JSON again.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0.5e+7,true,false,null,"x\u00e9\\\"\n"],"b":{}}`))
	f.Add([]byte(` "x" `))
	f.Add([]byte(`[1,]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		same := Edit(text, func(_ []byte, value string) string { return strings.Clone(value) })
		if !bytes.Equal(same, text) {
			t.Errorf("%.200q becomes %.200q", text, same)
		}
		other := Edit(text, func(_ []byte, value string) string { return "!" + value })
		if json.Valid(text) && !json.Valid(other) {
			t.Errorf("%.200q becomes %.200q", text, other)
		}
	})
}
