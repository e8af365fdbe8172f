package policy

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/mcpproxy/match"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// A kind is what a value of JSON is, as messages have it.
type kind string

const (
	anObject kind = "an object"
	aList    kind = "a list"
	aString  kind = "a string"
	aNumber  kind = "a number"
	aBoolean kind = "true or false"
	aNull    kind = "null"
)

func kindOf(raw []byte) kind {
	if len(raw) == 0 {
		return aNull
	}
	switch raw[0] {
	case '{':
		return anObject
	case '[':
		return aList
	case '"':
		return aString
	case 't', 'f':
		return aBoolean
	case 'n':
		return aNull
	}
	return aNumber
}

// textOf decodes a string of JSON.
func textOf(quoted []byte) (s string, ok bool) {
	if len(quoted) >= 2 && !strings.Contains(string(quoted), `\`) && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1]), true
	}
	return s, json.Unmarshal(quoted, &s) == nil
}

// An operand is what an argument is compared to.
type operand struct {
	kind   kind
	text   string
	number decimal
	truth  bool
}

// maxCompared bounds a text that is compared to a glob, or in a form of its own.
const maxCompared = 64 << 10

// asksAboutText returns why the user is asked about a text.
func (w condition) asksAboutText(s string) string {
	has := func(equal func(v operand) bool) bool {
		return slices.ContainsFunc(w.values, func(v operand) bool { return v.kind == aString && equal(v) })
	}
	switch {
	case w.op == "!=":
		if has(func(v operand) bool { return v.text == s }) {
			return ""
		}
	case len(s) > maxCompared:
		return fmt.Sprintf("it has more than %d bytes", maxCompared)
	case w.op == "==":
		form := folded(s)
		if !has(func(v operand) bool { return folded(v.text) == form }) {
			return ""
		}
	case w.op == "glob":
		form := []rune(folded(s))
		if !has(func(v operand) bool { return match.Glob([]rune(folded(v.text)), form) }) {
			return ""
		}
	default:
		if has(func(v operand) bool { return within(v.text, s) }) {
			return ""
		}
	}
	return "it is"
}

// within reports whether a file is in a folder by its path alone, whatever a server makes
// of escapes and of characters that look like dots and slashes.
func within(folder, file string) bool {
	for _, f := range []string{file} {
		if !strings.HasPrefix(f, "/") || strings.ContainsAny(f, "\\\x00") || slices.Contains(strings.Split(f, "/"), "..") {
			return false
		}
		if clean := path.Clean(f); folder != "/" && clean != folder && !strings.HasPrefix(clean, folder+"/") {
			return false
		}
	}
	if plain, err := url.PathUnescape(file); err == nil && plain != file {
		return within(folder, plain)
	}
	return true
}

// folded is the form in which texts are alike to some programs: without case and
// without what cannot be seen.
func folded(s string) string {
	s = strings.Map(func(r rune) rune {
		if text.IsInvisible(r) {
			return -1
		}
		return r
	}, s)
	return strings.ToLower(strings.ToUpper(strings.TrimSpace(s)))
}
