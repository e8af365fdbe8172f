package egress

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// An echo is an encoding in which a server may send a secret back, and its replacement.
type echo struct{ text, placeholder string }

// echoesOf returns the encodings of all secrets, longest first: a secret may be a prefix of
// another, and replacing it first would leave the rest of the longer one.
func echoesOf(credentials []Credential) []echo {
	var all []echo
	seen := map[string]bool{}
	for _, c := range credentials {
		for _, secret := range c.Secrets {
			for _, form := range encodings(secret) {
				if form != "" && !seen[form] {
					seen[form] = true
					all = append(all, echo{form, c.Placeholder})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b echo) int { return cmp.Compare(len(b.text), len(a.text)) })
	return all
}

// newReplacer replaces echoes; strings.Replacer tries them in this order.
func newReplacer(echoes []echo) *strings.Replacer {
	pairs := make([]string, 0, 2*len(echoes))
	for _, e := range echoes {
		pairs = append(pairs, e.text, e.placeholder)
	}
	return strings.NewReplacer(pairs...)
}

// encodings returns a secret as it is, and as servers encode it in JSON, HTML, URLs,
// hexadecimal and Base64.
func encodings(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), percentEncoded(secret), html.EscapeString(secret)}
	if quoted, err := json.Marshal(secret); err == nil { // with \u003c for <
		inner := string(quoted[1 : len(quoted)-1])
		plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner)
		forms = append(forms, inner, plain, strings.ReplaceAll(plain, "/", `\/`)) // the last as PHP writes it
	}
	for _, form := range slices.Clone(forms) {
		forms = append(forms, lowerEscapes(form))
	}
	if len(secret) < minEncoded {
		return forms
	}
	digits := hex.EncodeToString([]byte(secret))
	return append(append(forms, digits, strings.ToUpper(digits)), base64Cores(secret)...)
}

// minEncoded is the minimum length of a secret for its encodings in hexadecimal and Base64,
// which could otherwise occur by chance.
const minEncoded = 6

// percentEncoded encodes all that is not unreserved (RFC 3986, 2.3), as JavaScript's
// encodeURIComponent does but for a few marks.
func percentEncoded(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// lowerEscapes writes the digits of percent-encoding in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// base64Cores returns the parts of a secret's Base64 encoding that do not depend on the text
// before and after it: for each of the three alignments, in both alphabets.
func base64Cores(secret string) (cores []string) {
	for before := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + secret))
		first := (before*8 + 5) / 6            // the first character without bits of the text before
		last := (before + len(secret)) * 8 / 6 // the first character with bits of the text after
		core := whole[first:last]
		cores = append(cores, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
	}
	return cores
}
