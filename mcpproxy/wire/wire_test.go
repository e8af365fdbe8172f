package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/toolcell/toolcell/internal/seeds"
)

func TestReadKeepsMembersAsTheyAreWritten(t *testing.T) {
	m, err := Read(t.Context(), []byte(` {"id" : 1e3, "method":"a\u0062","x":[1], "params": {"n":1.0}, "jsonrpc":"2.0","id":"2" } `))
	if name, ok := m.MethodName(); err != nil || !ok || name != "ab" || string(m.ID) != `"2"` || string(m.Params) != `{"n":1.0}` || m.Result != nil {
		t.Errorf("%+v, %v", m, err)
	}
	if string(m.Version) != `"2.0"` || m.Error != nil {
		t.Errorf("its version is %s, its error %s", m.Version, m.Error)
	}
	m, err = Read(t.Context(), []byte(`{"error" : {"code":1.0} }`))
	if err != nil || string(m.Error) != `{"code":1.0}` || m.Version != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("the client has gone")
	cancel(ended)
	raw := []byte(`{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("a", 2*betweenLooks) + `"}`)
	if _, err := Read(ctx, raw); !errors.Is(err, ended) {
		t.Errorf("reading ends with %v", err)
	}
	if _, ok := Batch(ctx, slices.Concat([]byte("["), raw, []byte("]"))); ok {
		t.Error("an array is split")
	}
	if found := Traces(ctx, raw); found != nil {
		t.Errorf("%d traces are found", len(found))
	}
}

func TestUnreadableMessagesAreExplained(t *testing.T) {
	deep := strings.Repeat("[", 1100) + strings.Repeat("]", 1100)
	for raw, want := range map[string]string{
		``:                   `it is empty`,
		`{"a":1`:             `it is cut off after "{\"a\":1"`,
		`{"a":"x`:            `it is cut off after "{\"a\":\"x"`,
		`{"a":NaN}`:          `it is not JSON from byte 5 on: "{\"a\":NaN}"`,
		`{"a":-Infinity}`:    `it is not JSON from byte 6 on: "{\"a\":-Infinity}"`,
		"{\"a\":\"b\tc\"}":   `it is not JSON from byte 7 on: "{\"a\":\"b\tc\"}"`,
		`{"a":1} x`:          `it is not JSON from byte 8 on: "{\"a\":1} x"`,
		`{"a":1}{"b":2}`:     `it is not JSON from byte 7 on: "{\"a\":1}{\"b\":2}"`,
		`{'a': 1}`:           `it is not JSON from byte 1 on: "{'a': 1}"`,
		"\xff\xfe{\x00":      `it is UTF-16, and MCP wants UTF-8: "�{\x00"`,
		"\x00{\x00}":         `it is UTF-16, and MCP wants UTF-8: "\x00{\x00}"`,
		"  ":                 `it is empty`,
		`[1]`:                `it is a list instead of an object: "[1]"`,
		`"text"`:             `it is text instead of an object: "\"text\""`,
		`{"a":` + deep + `}`: `it nests deeper than 1000`,
		`{"a":` + strings.Repeat(`{"a":[`, 10_000):                                `it nests deeper than 1000`,
		`{"a":` + strings.Repeat("[", 999) + "1" + strings.Repeat("]", 999) + `}`: `it nests deeper than 1000`,
		`{"a":"` + strings.Repeat("[", 1000) + `"}{`:                              `it is not JSON from byte 1008 on: "…` + strings.Repeat("[", 22) + `\"}{"`,
		`{"a":[` + strings.Repeat("[],", 1000) + `1]}{`:                           `it is not JSON from byte 3009 on: "…` + strings.Repeat("[],", 7) + `1]}{"`,
		`{"a":NaN,"b":"` + strings.Repeat("b", 100) + `"}`:                        `it is not JSON from byte 5 on: "{\"a\":NaN,\"b\":\"` + strings.Repeat("b", 15) + `…"`,
		`{"a":"` + strings.Repeat("é", 5000):                                      "it is cut off after \"…" + strings.Repeat("é", 12) + "\"",
	} {
		_, err := Read(t.Context(), []byte(raw))
		var bad *Unreadable
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("%.60q: %v, want %s", raw, err, want)
		}
	}
}

func TestArraysThatCannotBeReadAreExplained(t *testing.T) {
	for raw, want := range map[string]string{
		`[{"id":1}`:    `it is cut off after "[{\"id\":1}"`,
		`[{"id":1}, x`: `it is not JSON from byte 11 on: "[{\"id\":1}, x"`,
		`[1]  x`:       `it is not JSON from byte 5 on: "[1]  x"`,
	} {
		if err := NotJSON([]byte(raw)); err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}

func TestEmptyListsAndObjectsAreKnown(t *testing.T) {
	type is struct{ list, object bool }
	for raw, want := range map[string]is{
		`[]`: {list: true}, `[ ]`: {list: true}, `{}`: {object: true}, "{\n}": {object: true},
		`[0]`: {}, `{"a":0}`: {}, `[[]]`: {}, `null`: {}, `""`: {}, `0`: {}, ``: {},
	} {
		if got := (is{IsEmptyList([]byte(raw)), IsEmptyObject([]byte(raw))}); got != want {
			t.Errorf("%q: %+v", raw, got)
		}
	}
}

// TestTracesOfDamagedMessages: an ID is found wherever it stands, and only if it is whole.
func TestTracesOfDamagedMessages(t *testing.T) {
	type traces []string
	long := func(size int) string { return `"` + strings.Repeat("a", size-2) + `"` }
	for raw, want := range map[string]traces{
		`{"jsonrpc":"2.0","id":3,"result":{"x":NaN}}`:                       {"3 answer"},
		`{"result":{"x":NaN,"id":7},"jsonrpc":"2.0","id":"a\"b"}`:           {`"a\"b" answer`},
		`{"result":{"x":"\x41 {[\" "},"id":1764115200123456789}`:            {"1764115200123456789 answer"},
		`{"jsonrpc":"2.0","id":3,"result":{"x":"cut`:                        {"3 answer"},
		`{"jsonrpc":"2.0","id":3,"err`:                                      {"3 "},
		`{"jsonrpc":"2.0","id":3`:                                           {" cut 3"}, // it may be 34
		`{"jsonrpc": "2.0", "id": "34`:                                      {" cut 34"},
		`{"jsonrpc":"2.0"`:                                                  {" cut "},
		`{"js`:                                                              {" cut "},
		`{"jsonl":1`:                                                        nil,
		`{"jsonrpc":"2.0","id":3,"method":"x","par`:                         {"3 request"},
		`{"result":{"content":[{"type":"text","text":"cut`:                  {" answer"},
		`{"jsonrpc":"2.0","error":{"code":NaN},"id":null}`:                  {" answer"},
		`{"jsonrpc":"2.0","id":3,"method":"ping","params":NaN}`:             {"3 request"},
		`{"method":"notifications/progress","params":{"id":3,"x":NaN}}`:     {" request"},
		`[{"id":1,"result":{}},{"id":2,"result":NaN},{"result":{},"id":"x"`: {"1 answer", "2 answer", " answer"},
		` [{"id":1,"result":NaN},{"id":2,"result":{}}]`:                     {"1 answer", "2 answer"},
		"{\"jsonrpc\" : \"2.0\", \"id\"\t: 3, \"error\"\n:NaN}":             {"3 answer"},
		`{"id":3,"name":"method","kind":"id","result":NaN}`:                 {"3 answer"},
		`{"id":` + long(MaxID-1) + `,"result":NaN}`:                         {long(MaxID-1) + " answer"},
		`{"id":` + long(MaxID) + `,"result":NaN}`:                           {" answer"},
		`{"level":"error","error":"boom","time":NaN}`:                       nil,
		`[INFO] {"id":3}`:                                                   nil,
		`{"text":"\"id\":3,`:                                                nil,
		`{`:                                                                 nil,
	} {
		var got traces
		for _, tr := range Traces(t.Context(), []byte(raw)) {
			what := ""
			if tr.Answer {
				what = "answer"
			}
			if tr.Request {
				what = "request"
			}
			if tr.Cut {
				what = strings.TrimSpace(what+" cut") + " " + tr.Begins
			}
			got = append(got, string(tr.ID)+" "+what)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

func TestIDsOfAnswersToUs(t *testing.T) {
	long := func(size int) string { return "3." + strings.Repeat("0", size-len("3.")) }
	for raw, want := range map[string]int64{
		`3`: 3, `3.0`: 3, `"3"`: 3, `3e0`: 3, `9007199254740991`: 9007199254740991,
		`1.5`: -1, `"1.5"`: -1, `9007199254740993`: -1, `18446744073709551619`: -1, `-1`: -1, `null`: -1, `"a"`: -1, `""`: -1, `true`: -1, `[3]`: -1, ``: -1, `"0x3"`: -1, `1e999`: -1,
		long(MaxID): 3, long(MaxID + 1): -1,
	} {
		id, ok := OurID([]byte(raw))
		if got, _ := id.Raw().(int64); ok != (want >= 0) || ok && got != want {
			t.Errorf("%.60s: %v, %v", raw, id, ok)
		}
	}
}

func TestErrorsAreReadWhateverTheyAre(t *testing.T) {
	for raw, want := range map[string]jsonrpc.Error{
		`{"code":-32000,"message":"m","data":{"a":1}}`: {Code: -32000, Message: "m", Data: []byte(`{"a":1}`)},
		`"text"`:                                 {Code: -32603, Message: "text"},
		`{"code":"E1","message":"m"}`:            {Code: -32603, Message: "m"},
		`{"code":"-32001","message":"m"}`:        {Code: -32001, Message: "m"},
		`{"code":5.0}`:                           {Code: 5, Message: `{"code":5.0}`},
		`{"message":{"a":1}}`:                    {Code: -32603, Message: `{"a":1}`},
		`{"code":1,"message":null,"data":"why"}`: {Code: 1, Message: `"why"`, Data: []byte(`"why"`)},
		`{"code":1,"message":"","data":"why"}`:   {Code: 1, Message: `"why"`, Data: []byte(`"why"`)},
		`{"code":1,"message":""}`:                {Code: 1, Message: `{"code":1,"message":""}`},
		`""`:                                     {Code: -32603},
		`true`:                                   {Code: -32603, Message: "true"},
		`["a"]`:                                  {Code: -32603, Message: `["a"]`},
		`{"code":18446744073709551616,"message":"big"}`: {Code: -32603, Message: "big"},
		`{"code":9007199254740993,"message":"m"}`:       {Code: 9007199254740993, Message: "m"},
	} {
		if got := ErrorOf([]byte(raw)); got.Code != want.Code || got.Message != want.Message || string(got.Data) != string(want.Data) {
			t.Errorf("%s: %d %s %s", raw, got.Code, got.Message, got.Data)
		}
	}
}

func TestMembersAreFoundAndReplacedInPlace(t *testing.T) {
	raw := []byte(`{"a":{"b":1, "b" : 2.0},"\u0063":[{"b":3}]}`)
	for _, tt := range []struct {
		path []string
		want string
	}{{[]string{"a", "b"}, "2.0"}, {[]string{"c"}, `[{"b":3}]`}, {[]string{"c", "b"}, ""}, {[]string{"b"}, ""}, {[]string{"a", "c"}, ""}, {[]string{"d", "b"}, ""}} {
		got := Member(raw, tt.path...)
		if string(got) != tt.want || (got == nil) != (tt.want == "") {
			t.Errorf("%v: %q", tt.path, got)
		}
		if got == nil {
			if got := Replace(raw, []byte(`"x"`), tt.path...); string(got) != string(raw) {
				t.Errorf("%v is replaced where it is not: %s", tt.path, got)
			}
		}
	}
	if got := Replace(raw, []byte(`"x"`), "a", "b"); string(got) != `{"a":{"b":1, "b" : "x"},"\u0063":[{"b":3}]}` {
		t.Errorf("%s", got)
	}
}

// TestAnArrayHasManyMessagesAtMost, of any depth, and else it is one that cannot be read.
func TestAnArrayHasManyMessagesAtMost(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	if all, ok := Batch(t.Context(), []byte("[{}, "+deep+"]")); !ok || len(all) != 2 || string(all[1]) != deep {
		t.Errorf("%d messages, %v", len(all), ok)
	}
	if _, ok := Batch(t.Context(), []byte("["+strings.Repeat("{},", maxBatch)+"{}]")); ok {
		t.Error("too many are taken")
	}
}

func TestMessagesComeAloneOrInAnArray(t *testing.T) {
	for line, want := range map[string][]string{
		` {"id":1} `:                 {`{"id":1}`},
		"\t[{\"id\":1} ,\r\n1.0] \n": {`{"id":1}`, `1.0`},
		`{"id":`:                     {`{"id":`}, // what is wrong with it is found later
		`[]`:                         nil,
		``:                           {``},
	} {
		all, ok := Batch(t.Context(), []byte(line))
		var got []string
		for _, one := range all {
			got = append(got, string(one))
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", line, got, ok)
		}
	}
}

// TestResultsMayNestAsDeepAsTheyLike: a list of tools is one, and only the tool is lost.
func TestResultsMayNestAsDeepAsTheyLike(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	raw := []byte(`{"jsonrpc":"2.0","id":1,"result":{"a":` + deep + `,"b":2}}`)
	m, err := Read(t.Context(), raw)
	if err != nil || string(Member(m.Result, "b")) != "2" || string(Member(m.Result, "a")) != deep {
		t.Errorf("%.100s, %v", m.Result, err)
	}
	if _, err := Read(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":`+deep+`}}`)); err == nil {
		t.Error("parameters may, too")
	}
}

func TestLinesEndInAnyWay(t *testing.T) {
	const text = "a\nb\rc\r\nd\n\re\r\r\nf\r\n\ng\rh\ni"
	want := []string{"a", "b", "c", "d", "", "e", "", "f", "", "g", "h", "i"}
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		lines := Lines{In: bufio.NewReaderSize(in, 16)}
		var got []string
		for line := ""; ; {
			piece, ended, err := lines.Piece()
			line += string(piece)
			if ended || err != nil && line != "" {
				got = append(got, line)
				line = ""
			}
			if err != nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// FuzzRead: what Read takes is found by Traces and Member as well, and nothing panics.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"id":"a\"","method":"m","params":{"_meta":{"progressToken":1.0}}}`, `[{"id":1}]`, `{"id":1,"result":{"x":NaN`} {
		f.Add([]byte(seed))
	}
	for _, tool := range seeds.Tools(f) {
		f.Add(slices.Concat([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`), tool, []byte(`]}}`)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Read(t.Context(), raw)
		found := Traces(t.Context(), raw)
		_ = ErrorOf(m.Error)
		if err == nil && IsID(m.ID) && len(m.ID) < MaxID && !slices.Contains(raw, '\\') {
			if len(found) != 1 || string(found[0].ID) != string(m.ID) || string(Member(raw, "id")) != string(m.ID) {
				t.Errorf("%s: %q, %v", raw, m.ID, found)
			}
		}
	})
}
