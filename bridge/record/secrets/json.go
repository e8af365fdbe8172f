package secrets

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// jsonQuotes has the quotes of the strings of a JSON text, so that what is blacked out in one ends where it
// ends. It is made when the first secret is found, as few texts have any.
type jsonQuotes struct {
	known bool
	at    []int // none if the text is not JSON
}

// fit returns a finding within the JSON string that it begins in, and whether something is left of it. The
// finding was made at a byte.
func (q *jsonQuotes) fit(f finding, at int, text string) (finding, bool) {
	if !q.known {
		q.known, q.at = true, quotesOf(text)
	}
	if q.at == nil {
		return f, true
	}
	end := q.end(f.from)
	if end < 0 {
		return f, q.end(at) < 0
	}
	f.quoted = false
	if f.to > end && (f.rule != rulePrivateKey || f.to == len(text)) { // a key may be a list of lines
		f.to = end
	}
	return f, f.to > f.from
}

// end returns where the string ends that has a byte, its closing quote included; -1 if none has.
func (q *jsonQuotes) end(at int) int {
	if n, _ := slices.BinarySearch(q.at, at); n%2 == 1 {
		return q.at[n]
	}
	return -1
}

// quotesOf returns the quotes of the strings of a JSON text.
func quotesOf(text string) (at []int) {
	start := strings.TrimLeft(text, " \t\r\n")
	if start == "" || strings.IndexByte(`{["`, start[0]) < 0 || !json.Valid([]byte(text)) {
		return nil
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			at = append(at, i)
		}
	}
	return at
}

// inNumber matches what stands for a number, or for part of one, and strings.
var inNumber = text.Pattern(`"(?:[^"\\]|\\.)*"|[-+.0-9eE]*(\[hidden:[^]"]*\])[-+.0-9eE]*`)

// quoteNumbers puts quotes around what stands for numbers if JSON text, without known secrets, would be no
// JSON any more: {"pin":[hidden:PIN]}.
func quoteNumbers(text, without string) string {
	if quotesOf(text) == nil || json.Valid([]byte(without)) {
		return without
	}
	return inNumber().ReplaceAllStringFunc(without, func(match string) string {
		if match[0] == '"' {
			return match
		}
		return `"` + inNumber().FindStringSubmatch(match)[1] + `"`
	})
}
