package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/internal/text"
)

func TestBounds(t *testing.T) {
	words := boundtest.Pick(boundtest.Text("", ""), "one word", "words", "other words", "names in parts", "lines", "combining characters", "characters that fold to many", "bytes that are not UTF-8", "digits")
	tools := append(slices.Clone(words),
		boundtest.Counted("short words", "", "%x ", "", ""),
		boundtest.Repeated("humps", "", "aB", ""),
		boundtest.Repeated("to-do", "", "to-do ", ""),
		boundtest.Repeated("verbs", "", "create_get_delete ", ""),
	)
	tools = append(tools, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"properties":`, "}"), "deep objects", "a wide object", "many small objects", "a long key", "escapes"), " as parameters")...)
	queries := append(boundtest.Only(words, "words", "other words", "combining characters", "characters that fold to many"),
		boundtest.Repeated("a word of all tools", "", "create ", ""),
		boundtest.Counted("mistyped words", "", "creats%d ", "", ""),
		boundtest.Counted("beginnings of words", "", "wor%d ", "", ""),
		boundtest.Repeated("stop words", "", "the ", ""),
		boundtest.Repeated("what people say", "", "get rid of a document send an email to my boss ", ""),
	)
	boundtest.Run(t,
		boundtest.Parser{Row: "tools to search", Shapes: tools, ParseContext: func(ctx context.Context, text []byte) error {
			_, err := Make(ctx, hostileTools(string(text)))
			return err
		}},
		boundtest.Parser{Row: "query", Shapes: queries, Before: func() { hostileIndex() }, Parse: func(text []byte) error {
			return errors.New(fmt.Sprint(hostileIndex().Search(string(text), 50)))
		}},
	)
}

// hostileTools are tools of one server whose texts are parts of one, as long as a tool's
// may be.
func hostileTools(all string) (docs []Document) {
	for i := 0; len(all) > 0; i++ {
		n := min(len(all), 4500)
		docs = append(docs, Document{
			Server: "server", Tool: fmt.Sprint(text.Clip(all, 500), i), Title: text.Clip(all[:n], 200), Description: text.Clip(all[:n], 4000),
			InputSchema: json.RawMessage(all[:n]),
		})
		all = all[n:]
	}
	return docs
}

// hostileIndex has as many tools as a server may have, and as many words.
var hostileIndex = sync.OnceValue(func() *Index {
	docs := make([]Document, 20_000)
	for i := range docs {
		docs[i] = Document{
			Server: "server", Tool: fmt.Sprintf("create_word_%d", i),
			Description: fmt.Sprintf("create get mail document delete send word%d word%d", 2*i, 2*i+1),
		}
	}
	return New(docs)
})
