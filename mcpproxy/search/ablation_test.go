//go:build figures

package search

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
)

// leaveOut has, by name, what takes a part of the search away until the test ends.
var leaveOut = map[string]func(testing.TB){
	"utterances": func(t testing.TB) {
		replace(t, &theUtterances, func() *utterances { return &utterances{meaning: &embeddings{}} })
	},
	"vectors": func(t testing.TB) { // and the fitted ones, which belong to their words
		replace(t, &theVectors, vectors{})
	},
	"fitted vectors": func(t testing.TB) {
		replace(t, &inQuestions, side{})
		replace(t, &inTools, side{})
	},
	"verbs": func(t testing.TB) {
		replace(t, &actionVerbs, map[string]action{})
	},
}

func replace[T any](t testing.TB, variable *T, value T) {
	old := *variable
	t.Cleanup(func() { *variable = old })
	*variable = value
}

// TestAblation writes how often the fresh parts' tools are found with each part of
// the search left out, to the file that TOOLCELL_ABLATION names.
func TestAblation(t *testing.T) {
	name := os.Getenv("TOOLCELL_ABLATION")
	if name == "" {
		t.Skip("TOOLCELL_ABLATION names no file: make ablation")
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table := tabwriter.NewWriter(f, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "recall@5 without\tfresh: model\tpeople\tfresh2: model\tpeople\tmean of both\tmeasuring part")
	for _, row := range []struct{ label, parts string }{
		{"(all there)", ""},
		{"utterances", "utterances"},
		{"vectors", "vectors"},
		{"fitted vectors", "fitted vectors"},
		{"verbs", "verbs"},
		{"all of them", "utterances, vectors, verbs"},
	} {
		t.Run(row.label, func(t *testing.T) {
			for part := range strings.SplitSeq(row.parts, ", ") {
				if part != "" {
					leaveOut[part](t)
				}
			}
			fresh := freshRecall(t, "fresh.txt", "tools", "fresh")
			fresh2 := freshRecall(t, "fresh2.txt", "tools", "fresh", "fresh2")
			docs, number := publicTools(t, "tools")
			measuring := measure(New(docs), queriesOf(t, "measure.txt", number))["all"]
			mean := recall{n: fresh[0].n + fresh2[0].n, five: fresh[0].five + fresh2[0].five}
			fmt.Fprintf(table, "%s", row.label)
			for _, r := range []recall{fresh[1], fresh[2], fresh2[1], fresh2[2]} {
				fmt.Fprintf(table, "\t%.2f (%d of %d)", r.at5(), r.five, r.n)
			}
			fmt.Fprintf(table, "\t%.3f\t%.3f\n", mean.at5(), measuring.at5())
		})
	}
}

// freshRecall measures all queries of a part, those in a model's wording, and those
// in people's.
func freshRecall(t *testing.T, file string, folders ...string) [3]recall {
	docs, number := publicTools(t, folders...)
	by := measure(New(docs), queriesOf(t, file, number))
	all, model := *by["all"], *by["a model would say"]
	return [3]recall{all, model, {n: all.n - model.n, first: all.first - model.first, five: all.five - model.five}}
}
