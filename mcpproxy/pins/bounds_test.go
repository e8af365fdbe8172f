package pins

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.JSON(`{"name":"t","inputSchema":`, "}"), "deep lists", "deep objects", "open objects", "many empty lists", "many small objects", "escapes", "a huge number")
	shapes = append(shapes, boundtest.Pick(boundtest.Text(`{"name":"t","description":"`, `"}`), "one word", "overrides", "joiners", "tags", "characters that fold to many")...)
	shapes = append(shapes,
		boundtest.Repeated("members in other cases", `{"name":"t"`, `,"Name":"t","NAME":"t"`, "}"),
		boundtest.Repeated("sentences", `{"name":"t","description":"`, "a. b. ", `"}`),
		boundtest.Repeated("lines of text", `{"name":"t","description":"`, `a\n`, `"}`),
		boundtest.Counted("other lines of text", `{"name":"t","description":"`, `a%d\n`, "", `"}`),
		boundtest.Counted("other members", `{"name":"t","inputSchema":{`, `"k%d":[1,2]`, ",", "}}"),
	)
	before, err := Define([]byte(`{"name":"t","description":"a\nb","inputSchema":{"k1":1,"k2":[[1]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	boundtest.Run(t, boundtest.Parser{Row: "definition that is pinned", Shapes: shapes, Parse: func(text []byte) error {
		d, err := Define(text)
		if err != nil {
			return err
		}
		ReadHints(text)
		half, _ := Define(text[:len(text)/2])
		for _, was := range []Definition{before, half} {
			both := &Tool{Pinned: &Version{Digest: was.Digest, Shown: was.Shown}, Seen: &Version{Digest: d.Digest, Shown: d.Shown, Hidden: d.Hidden}}
			both.Differences()
			both.Seen.HiddenLines()
		}
		return nil
	}})
}
