// Package secrets blacks out secrets in texts that are kept: those that the caller knows, what looks
// like a token of a service or a key, the values of keys that are named like a secret, and what
// expressions of the user match. What it puts in their place names the rule.
//
// It finds what is written plainly, and no secret that code has encoded or taken apart.
package secrets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Hider blacks out secrets. A nil one hides nothing.
type Hider struct {
	known  func(string) string
	redact []*regexp.Regexp
}

// New returns a Hider of what known removes from a text, which may be nil, of what looks like a secret,
// and of what expressions match. What known puts in place of a secret is [hidden:NAME].
func New(known func(string) string, redact []*regexp.Regexp) *Hider {
	return &Hider{known: known, redact: redact}
}

// The names of rules, beside those of the shapes of tokens.
const (
	ruleKnown = "known"      // to the caller of New
	ruleKey   = "key"        // the value of a key that is named like a secret
	ruleUser  = "redact[%d]" // expressions, from 0

	rulePrivateKey = "private-key"
)

// hidden begins what stands in for a secret.
const hidden = "[hidden:"

// placeholder stands in for what a rule has blacked out. It can be in a JSON string.
func placeholder(rule string) string { return hidden + rule + "]" }

// Name returns a name without what looks like a secret, and the rules that found some. Known secrets do
// not count: a server may be called what is a password elsewhere.
func (h *Hider) Name(name string) (string, []string) {
	if h == nil {
		return name, nil
	}
	return hideShapes(name, nil)
}

// Text returns a text without secrets, and the rules that found some. JSON stays JSON.
func (h *Hider) Text(text string) (string, []string) {
	if h == nil {
		return text, nil
	}
	var rules []string
	if h.known != nil {
		if without := h.known(text); without != text {
			text, rules = quoteNumbers(text, without), append(rules, ruleKnown)
		}
	}
	text, rules = hideShapes(text, rules)
	for i, expr := range h.redact {
		if expr.MatchString(text) {
			rule := fmt.Sprintf(ruleUser, i)
			text, rules = expr.ReplaceAllLiteralString(text, placeholder(rule)), append(rules, rule)
		}
	}
	return text, rules
}

// A finding is a secret in a text, from one byte to another.
type finding struct {
	from, to int
	rule     string
	quoted   bool // what stands for it needs quotes of its own
}

// hideShapes blacks out tokens and the values of secret keys.
func hideShapes(text string, rules []string) (string, []string) {
	var out strings.Builder
	var quotes jsonQuotes
	done := 0
	for at := 0; at < len(text); at++ {
		shapes := begins[text[at]]
		if shapes == nil {
			continue
		}
		f, ok := findShape(text, at, done, shapes)
		if !ok || strings.HasPrefix(text[f.from:], hidden) {
			continue
		}
		f.from = max(f.from, done)
		if f, ok = quotes.fit(f, at, text); !ok {
			continue
		}
		out.WriteString(text[done:f.from])
		stand := placeholder(f.rule)
		if f.quoted {
			stand = `"` + stand + `"`
		}
		out.WriteString(stand)
		if !slices.Contains(rules, f.rule) {
			rules = append(rules, f.rule)
		}
		done = f.to
		at = max(at, f.to-1)
	}
	if done == 0 {
		return text, rules
	}
	out.WriteString(text[done:])
	return out.String(), rules
}
