package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A server with a great many words of its own must not fill the index: its words that
// others use still count, and so do the words of other servers.
func TestOneServerAddsOnlySoManyWords(t *testing.T) {
	docs := []Document{{Server: "other", Tool: "zorbak"}}
	for i := range 100 {
		var own []string
		for n := range 330 {
			own = append(own, fmt.Sprintf("a%05d", 330*i+n))
		}
		docs = append(docs, Document{Server: "greedy", Tool: "t", Description: strings.Join(own, " ")})
	}
	docs[100].Tool = "zorbak_quonder"
	docs = append(docs, Document{Server: "other", Tool: "plimmot"})
	ix := New(docs)
	for query, want := range map[string][]int{"zorbak": {0, 100}, "plimmot": {101}, "quonder": nil} {
		if got := ix.found(query, 5); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
}

func TestOnlySoManyParametersCount(t *testing.T) {
	properties := map[string]any{}
	for i := range maxIndexedParameters {
		properties[fmt.Sprintf("p%02d", i)] = map[string]any{}
	}
	properties["zorbak"] = map[string]any{}
	schema, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	ix := New([]Document{{Server: "a", Tool: "plimmot", InputSchema: schema}})
	if got := ix.found("63", 5); len(got) != 1 {
		t.Errorf("the last parameter that counts finds %v", got)
	}
	if got := ix.found("zorbak", 5); len(got) != 0 {
		t.Errorf("one more finds %v", got)
	}
}

func TestOnlyTheBeginningOfALongQueryCounts(t *testing.T) {
	ix, _ := catalogOf("a/zorbak: One", "a/plimmot: Two")
	if got := ix.found(strings.Repeat("zorbak ", maxQueryWords-1)+"plimmot", 5); len(got) != 2 {
		t.Errorf("a query as long as may be finds %v", got)
	}
	if got := ix.found(strings.Repeat("zorbak ", maxQueryWords)+"plimmot", 5); !slices.Equal(got, []int{0}) {
		t.Errorf("one word more finds %v", got)
	}
}

// endedContext has ended, and counts how often it is asked.
type endedContext struct {
	context.Context
	asked int
}

func (c *endedContext) Err() error {
	c.asked++
	return c.Context.Err()
}

func TestMakeEndsWithItsContext(t *testing.T) {
	why := errors.New("the server is gone")
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	ctx := &endedContext{Context: ended}
	if ix, err := Make(ctx, make([]Document, 1000)); ix != nil || !errors.Is(err, why) {
		t.Errorf("made %v: %v", ix, err)
	}
	if ctx.asked > 10 {
		t.Errorf("the context is asked %d times: it goes on with the next tool", ctx.asked)
	}
}

func TestQueriesWithoutLettersHaveNoWords(t *testing.T) {
	for query, want := range map[string]bool{"": false, " -- ?!": false, "of the": true, "zorbak": true, "7": true, "変": true} {
		if HasWords(query) != want {
			t.Errorf("%q has words: %v", query, !want)
		}
	}
}
