package search

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manyTools are n documents made of the public servers' tools: each again and
// again, under other names.
func manyTools(t testing.TB, n int) []Document {
	real, _ := publicTools(t, "tools")
	docs := make([]Document, n)
	for i := range docs {
		d := real[i%len(real)]
		if round := i / len(real); round > 0 {
			d.Server = fmt.Sprintf("%s-%d", d.Server, round)
			d.Tool = fmt.Sprintf("%s_%d", d.Tool, round)
		}
		docs[i] = d
	}
	return docs
}

// worked is the processor time of this thread: on a busy machine the clock on
// the wall measures the others.
func worked(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkSearch answers the labeled queries over 10,000 tools.
func BenchmarkSearch(b *testing.B) {
	docs := manyTools(b, 10_000)
	ix := New(docs)
	_, number := publicTools(b, "tools")
	queries := append(queriesOf(b, "tune.txt", number), queriesOf(b, "measure.txt", number)...)
	var took []time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := 0; b.Loop(); i++ {
		start := worked(b)
		ix.found(queries[i%len(queries)].query, 5)
		took = append(took, worked(b)-start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-cpu-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-cpu-µs")
}

// BenchmarkIndex makes the index of 10,000 tools.
func BenchmarkIndex(b *testing.B) {
	docs := manyTools(b, 10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var ix *Index
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := worked(b)
	for b.Loop() {
		ix = New(docs)
	}
	b.ReportMetric(float64((worked(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "heap-MiB")
	runtime.KeepAlive(ix)
	runtime.KeepAlive(docs)
}

// BenchmarkUtterances reads the utterances, which only the first search does.
func BenchmarkUtterances(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := worked(b)
	for b.Loop() {
		readUtterances()
	}
	b.ReportMetric(float64((worked(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
}

func TestSearchIsBounded(t *testing.T) {
	huge := strings.Repeat("all work and no play ", 50_000) // a megabyte
	properties := map[string]any{}
	for i := range 5000 {
		properties[fmt.Sprintf("parameter_%d", i)] = map[string]any{"type": "string"}
	}
	schema, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		t.Fatal(err)
	}
	ix := New([]Document{
		{Server: "s", ServerDescription: huge, Tool: huge, Title: huge, Description: huge, InputSchema: schema},
		{Server: "s", Tool: "send_mail", Description: "Send a mail"},
	})
	if n := len(ix.lexical.vocab); n > 200 {
		t.Errorf("%d words of a hostile tool are indexed", n)
	}
	if got := ix.found("send mail "+huge, 5); len(got) == 0 {
		t.Error("a long query finds nothing")
	}
	if n := len(ix.lexical.understand(huge).words); n > maxQueryWords {
		t.Errorf("%d words of a long query are looked at", n)
	}
}

func TestSearchTakesAnyText(t *testing.T) {
	names := []string{"", "__class__", "../x", "a\nb", "🙂", "\xff\xfe", "名前を変更", strings.Repeat("é", 3000)}
	var docs []Document
	for _, name := range names {
		docs = append(docs, Document{Server: name, Tool: name, Title: name, Description: name, InputSchema: json.RawMessage(name)})
	}
	ix := New(docs)
	for _, query := range append(names, "the of", "wie ist das Wetter", "\x00", "a b c d e f g h i j k l m n o p") {
		for _, doc := range ix.found(query, 5) {
			if doc < 0 || doc >= len(docs) {
				t.Errorf("%q finds document %d", query, doc)
			}
		}
	}
	if got := New(nil).found("anything", 5); len(got) != 0 {
		t.Errorf("an empty index has %v", got)
	}
	if got := ix.found("名前を変更", 5); len(got) == 0 || got[0] != 6 {
		t.Errorf("a name in Japanese is not found by itself: %v", got)
	}
}

func TestSearchIsSafeForManyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	docs, number := publicTools(t, "tools")
	queries := queriesOf(t, "tune.txt", number)
	ix := New(docs)
	want := make([][]int, len(queries))
	for i, q := range queries {
		want[i] = ix.found(q.query, 10)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i, q := range queries {
				if got := ix.found(q.query, 10); !slices.Equal(got, want[i]) {
					t.Errorf("%q finds %v, then %v", q.query, want[i], got)
				}
			}
		})
	}
	all.Wait()
}

func TestThesaurusTakesNothingFromTheMeasuringPart(t *testing.T) {
	_, number := publicTools(t, "tools")
	raw, err := os.ReadFile("data/thesaurus.txt")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if tools, people, ok := strings.Cut(line, ":"); ok && line[0] != '#' {
			for _, p := range append(phrases(tools), phrases(people)...) {
				have[strings.Join(p, " ")] = true
			}
		}
	}
	for _, q := range queriesOf(t, "measure.txt", number) {
		s := stems(q.query)
		for i := range s {
			for n := 3; n <= maxPhrase && i+n <= len(s); n++ {
				// Idioms of the dictionary belong to no query.
				if key := strings.Join(s[i:i+n], " "); have[key] && key != "get rid of" {
					t.Errorf("the thesaurus has %q, a phrase of %q", key, q.query)
				}
			}
		}
	}
}

// maxPhrase is how many words the name of a tool has at most in the utterances.
const maxPhrase = 6

// phrases returns the stems of each phrase of a list with commas between.
func phrases(list string) (all [][]string) {
	for phrase := range strings.SplitSeq(list, ",") {
		if s := stems(phrase); len(s) > 0 && len(s) <= maxPhrase {
			all = append(all, s)
		}
	}
	return all
}

// stems returns all stems of a phrase, stop words as well.
func stems(phrase string) []string {
	all := lowered(phrase)
	for i, w := range all {
		all[i] = stem(w)
	}
	return all
}

func TestNamesInTheUtterancesHaveFewWords(t *testing.T) {
	for _, names := range theUtterances().answers {
		for _, name := range names {
			if len(name) == 0 || len(name) > maxPhrase {
				t.Errorf("%q has %d words", name, len(name))
			}
		}
	}
}

func TestStopWordsAreTheirOwnStems(t *testing.T) {
	for w := range stopWords {
		if stem(w) != w {
			t.Errorf("the stem of %q is %q", w, stem(w))
		}
	}
}

func TestUtterancesLendNames(t *testing.T) {
	docs := []Document{
		{Server: "a", Tool: "get_forecast", Description: "Returns data for the coming days"},
		{Server: "a", Tool: "search_files", Description: "Matches a pattern"},
		{Server: "b", Tool: "create_label", Description: "Makes one"},
		{Server: "b", Tool: "delete_label", Description: "Takes one"},
	}
	ix := New(docs)
	for _, c := range []struct {
		query string
		want  int
	}{
		{"do I have to take an umbrella", 0},
		{"umbrella tomorrow, do I need one?", 0}, // not word for word
		{"where on earth did I put my tax papers", 1},
		{"delete label", 3},
	} {
		if got := ix.found(c.query, 1); len(got) == 0 || got[0] != c.want {
			t.Errorf("%q finds %v, want %d", c.query, got, c.want)
		}
	}
}

// Every line of the utterances has tools and utterances, and none is there twice: a
// colon or a comma in the wrong place is easily made.
func TestUtterancesAreWellFormed(t *testing.T) {
	y := theUtterances()
	if len(y.all) < 2500 || len(y.answers) < 1000 {
		t.Fatalf("only %d utterances of %d needs are read", len(y.all), len(y.answers))
	}
	said := make([]bool, len(y.answers))
	for i, s := range y.all {
		said[s.need] = true
		if s.total == 0 && y.meaning.scales[i] == 0 {
			t.Errorf("an utterance of %v says nothing", y.answers[s.need])
		}
	}
	for need, names := range y.answers {
		if len(names) == 0 || !said[need] {
			t.Errorf("need %d: %v has no tools or no utterances", need, names)
		}
	}
}

func TestWordsOfOneMeaningAreClose(t *testing.T) {
	cosine := func(a, b string) float32 {
		x, y := untuned.vectorOf([]string{a}), untuned.vectorOf([]string{b})
		var sum float32
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	for _, w := range [][3]string{
		{"delete", "erase", "weather"}, {"picture", "photo", "invoice"}, {"mail", "letter", "container"}, {"song", "music", "database"},
	} {
		if near, far := cosine(w[0], w[1]), cosine(w[0], w[2]); near < far+0.2 {
			t.Errorf("%s is as close to %s (%.2f) as to %s (%.2f)", w[0], w[2], far, w[1], near)
		}
	}
	if theVectors.knows("qqqqq") || !theVectors.knows("delete") {
		t.Error("the words of the vectors are not found")
	}
}

func TestParameterNamesAreOfTwoLevels(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		want   []string
	}{
		"two levels":          {`{"properties":{"a":{"properties":{"bee":{"properties":{"sea":{}}}}},"dee":{"items":{"properties":{"ee":{}}}}}}`, []string{"a", "bee", "dee"}},
		"what makes no sense": {`{"description":5,"properties":{"aye":true,"bee":{"description":["x"]},"sea":null}}`, []string{"aye", "bee", "sea"}},
		"no object":           {`{"properties":[]}`, nil},
		"a list":              {`[]`, nil},
	} {
		if got := parameters(json.RawMessage(tt.schema)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
