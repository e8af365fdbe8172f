package boundtest

import (
	"bytes"
	"fmt"
	"strings"
)

// JSON returns shapes of JSON, each between two texts, so that they can stand where a
// parser looks.
func JSON(before, after string) []Shape {
	return Between(before, after,
		nested("deep lists", "[", "]"),
		nested("deep objects", `{"a":`, "}"),
		nested("deep items", `{"items":[`, "]}"),
		repeated("open lists", "", "[", ""),
		repeated("open objects", "", `{"a":`, ""),
		counted("a wide object", "{", `"k%d":1`, ",", "}"),
		repeated("a wide list", "[1", ",1", "]"),
		repeated("twins", `{"a":1`, `,"a":1`, "}"),
		repeated("many empty objects", "[{}", ",{}", "]"),
		repeated("many empty lists", "[[]", ",[]", "]"),
		repeated("many small objects", `[{"a":1}`, `,{"a":1}`, "]"),
		repeated("a long key", `{"`, "k", `":1}`),
		counted("long keys", "{", `"`+strings.Repeat("k", 1000)+`%d":1`, ",", "}"),
		repeated("a long string", `"`, "s", `"`),
		repeated("a string that does not end", `"`, "s", ""),
		repeated("escapes", `"`, `\u00e9\"`, `"`),
		repeated("characters of four bytes", `"`, "😀", `"`),
		repeated("a huge number", "", "9", ""),
		repeated("a huge exponent", "1e", "9", ""),
		repeated("a long fraction", "0.", "7", ""),
		repeated("white space", "", " \n", "1"),
	)
}

// TOML returns shapes of TOML between two texts.
func TOML(before, after string) []Shape {
	return Between(before, after,
		nested("deep inline tables", "x={a=", "}"),
		repeated("open inline tables", "x=", "{a=", ""),
		nested("deep lists", "x=[", "]"),
		repeated("open lists", "x=", "[", ""),
		repeated("a dotted key", "a", ".a", " = 1"),
		repeated("a dotted header", "[a", ".a", "]"),
		counted("dotted keys", "", strings.Repeat("a.", 90)+"b%d=1\n", "", ""),
		counted("tables", "", "[t%d]\n", "", ""),
		counted("tables in a table", "", "[t.t%d]\n", "", ""),
		repeated("a list of tables", "", "[[t]]\n", ""),
		counted("lists of tables", "", "[[t%d]]\n", "", ""),
		counted("tables in lists of tables", "", "[[t]]\n[t.t%d]\n", "", ""),
		counted("keys", "", "k%d=1\n", "", ""),
		repeated("twins", "", "k=1\n", ""),
		counted("inline members", "x={", "k%d=1", ",", "}"),
		repeated("a list", "x=[", "1,", "]"),
		repeated("a list of empty tables", "x=[", "{},", "]"),
		repeated("a list of dates", "x=[", "1979-05-27,", "]"),
		repeated("a long string", `x="`, "s", `"`),
		repeated("escapes", `x="`, `\u00e9`, `"`),
		repeated("a string of lines", `x="""`, "s\n", `"""`),
		repeated("a long key", "", "k", "=1"),
		repeated("a huge number", "x=", "9", ""),
		repeated("a long fraction", "x=0.", "7", ""),
		repeated("comments", "", "#\n", ""),
		repeated("a comment", "", "#", ""),
		repeated("empty lines", "", "\n", ""),
	)
}

// YAML returns shapes of YAML.
func YAML() []Shape {
	return []Shape{
		nested("deep lists", "[", "]"),
		repeated("open lists", "", "[", ""),
		nested("deep objects", "{a: ", "}"),
		repeated("deep indents", "", "- ", "a"),
		{"aliases of aliases", func(n int) []byte {
			text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
			for i := 1; ; i++ {
				next := fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
				if len(text)+len(next) > n {
					return []byte(text)
				}
				text += next
			}
		}},
		repeated("aliases of one", "a: &a {k: v}\nb: [*a", ",*a", "]"),
		counted("merges", "a: &a {k: v}\n", "b%d: {<<: *a}\n", "", ""),
		counted("anchors", "", "k%d: &k v\n", "", ""),
		counted("a wide object", "", "k%d: v\n", "", ""),
		repeated("twins", "", "k: v\n", ""),
		repeated("a wide list", "", "- v\n", ""),
		repeated("documents", "", "---\na: 1\n", ""),
		repeated("a long key", "", "k", ": v"),
		repeated("a long string", "k: ", "s", ""),
		repeated("a quoted string", `k: "`, `\x41`, `"`),
		repeated("a folded string", "k: >\n", " s\n", ""),
		repeated("a huge number", "k: ", "9", ""),
		repeated("comments", "", "# c\n", "a: 1\n"),
		repeated("tags", "k: ", "!a ", "v"),
	}
}

// Lines returns shapes of text in lines, as headers and events are.
func Lines(before, after string) []Shape {
	return Between(before, after,
		counted("header lines", "", "k%d: v\r\n", "", ""),
		repeated("the same header", "", "k: v\r\n", ""),
		repeated("a long line", "", "x", "\n"),
		repeated("a line that does not end", "", "x", ""),
		repeated("a long value", "k: ", "v", "\r\n"),
		repeated("folded lines", "k: v\r\n", " v\r\n", ""),
		repeated("empty lines", "", "\n", ""),
		repeated("carriage returns", "", "\r", ""),
		repeated("zero bytes", "", "\x00", ""),
		repeated("bytes that are not UTF-8", "", "\xff", ""),
		repeated("colons", "", ":", "\n"),
		repeated("spaces", "", " ", "\n"),
	)
}

// HTML returns shapes of HTML.
func HTML() []Shape {
	return []Shape{
		counted("links", "", `<a href="f%d.whl">f</a>`, "\n", ""),
		repeated("open tags", "", "<a>", ""),
		repeated("angles", "", "<", ""),
		counted("attributes", "<a ", `k%d="v"`, " ", ">"),
		repeated("the same attribute", "<a ", `href="f" `, ">"),
		repeated("a tag that does not end", "<a href=", "x", ""),
		repeated("a long name of a tag", "<", "a", ">"),
		repeated("references", `<a href="`, "&amp;", `">`),
		repeated("escapes", `<a href="`, "%41", `">`),
		repeated("comments", "", "<!---->", ""),
		repeated("a comment that does not end", "<!--", "-", ""),
		repeated("a script that does not end", "<script>", "</scrip", ""),
		repeated("scripts", "", "<script></script>", ""),
		repeated("text", "", "x", ""),
		repeated("zero bytes", "", "\x00", ""),
	}
}

// Between puts shapes between two texts.
func Between(before, after string, shapes ...Shape) []Shape {
	all := make([]Shape, len(shapes))
	for i, s := range shapes {
		all[i] = Shape{s.Name, func(n int) []byte {
			return bytes.Join([][]byte{[]byte(before), s.Make(max(0, n-len(before)-len(after))), []byte(after)}, nil)
		}}
	}
	return all
}

// Nested returns a shape that opens as often as it closes.
func Nested(name, open, end string) Shape { return nested(name, open, end) }

// Repeated returns a shape that has one text again and again.
func Repeated(name, before, again, after string) Shape { return repeated(name, before, again, after) }

// Counted returns a shape that has a text again and again with a number in it, and
// something between two of them.
func Counted(name, before, again, between, after string) Shape {
	return counted(name, before, again, between, after)
}

func nested(name, open, end string) Shape {
	return Shape{name, func(n int) []byte {
		times := max(1, (n-1)/(len(open)+len(end)))
		return []byte(strings.Repeat(open, times) + "1" + strings.Repeat(end, times))
	}}
}

func repeated(name, before, again, after string) Shape {
	return Shape{name, func(n int) []byte {
		return []byte(before + strings.Repeat(again, max(1, (n-len(before)-len(after))/len(again))) + after)
	}}
}

func counted(name, before, again, between, after string) Shape {
	return Shape{name, func(n int) []byte {
		out := []byte(before)
		for i := 0; ; i++ {
			next := fmt.Appendf(nil, again, i)
			if i > 0 && len(out)+len(between)+len(next)+len(after) > n {
				return append(out, after...)
			}
			if i > 0 {
				out = append(out, between...)
			}
			out = append(out, next...)
		}
	}}
}
