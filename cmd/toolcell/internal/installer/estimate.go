package installer

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
)

// ToolText returns what a client tells a model about a tool.
func ToolText(t catalog.Tool) (string, error) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // \u003c for < would cost more than it does
	err := e.Encode(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}{t.Name, t.Description, t.InputSchema})
	return strings.TrimSpace(text.String()), err
}

// EstimateTokens estimates the tokens of a tool's text: a word is about one, and so
// are two marks of punctuation. The vocabulary of a tokenizer would make this
// program a quarter larger; over the tools of a server the estimate is within
// some 15 % of one.
func EstimateTokens(text string) int {
	words, marks, inWord := 0, 0, false
	for _, c := range text {
		letter := unicode.IsLetter(c) || unicode.IsDigit(c)
		if letter && !inWord {
			words++
		} else if !letter && c != ' ' {
			marks++
		}
		inWord = letter
	}
	return words + marks/2
}
