package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

func TestEditPassesTokensWithTheirMembers(t *testing.T) {
	text := ` {"a" : "x", "b":{"c":[1.50,"y",{"d":null}],"e": true}, "f":"\u0061" , "g":[[]],"":{}} `
	want := "-\"a\" \"a\"\"x\" -\"b\" -\"c\" -1.50 -\"y\" -\"d\" \"d\"null -\"e\" \"e\"true -\"f\" \"f\"\"\\u0061\" -\"g\" -\"\" "
	var got bytes.Buffer
	out := Edit([]byte(text), func(name, token []byte) []byte {
		if name == nil {
			name = []byte("-")
		}
		fmt.Fprintf(&got, "%s%s ", name, token)
		return token
	})
	if got.String() != want || string(out) != text {
		t.Errorf("got  %s\nwant %s\nas %s", got.String(), want, out)
	}
	out = Edit([]byte(text), func(name, token []byte) []byte {
		if string(name) == `"a"` || string(token) == `"d"` || string(token) == "1.50" {
			return []byte(`"new"`)
		}
		return token
	})
	if want := ` {"a" : "new", "b":{"c":["new","y",{"new":null}],"e": true}, "f":"\u0061" , "g":[[]],"":{}} `; string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

// FuzzEdit: all but the tokens stays, and what replaces each makes JSON again.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0.5e+7,true,false,null,"x\u00e9\\\"\n"],"b":{}}`))
	f.Add([]byte(` "x" `))
	f.Add([]byte(`[1,]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		same := Edit(text, func(_, token []byte) []byte { return bytes.Clone(token) })
		if !bytes.Equal(same, text) {
			t.Errorf("%.200q becomes %.200q", text, same)
		}
		other := Edit(text, func(_, token []byte) []byte { return append([]byte(`"!`), append(bytes.Trim(token, `"`), '"')...) })
		if json.Valid(text) && !json.Valid(other) {
			t.Errorf("%.200q becomes %.200q", text, other)
		}
	})
}
