package search

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"text/tabwriter"
)

// labeled is a query and the tools that are right for it.
type labelled struct {
	kind, query string
	right       []int
}

// noShared is the kind of query none of whose words is in its tools' texts.
const noShared = "no shared word"

// publicTools reads the tool lists of some folders of testdata/recall: those of
// public servers, as they answered tools/list.
func publicTools(t testing.TB, folders ...string) (docs []Document, number map[string]int) {
	var files []string
	for _, folder := range folders {
		some, err := filepath.Glob(filepath.Join("testdata", "recall", folder, "*.json"))
		if err != nil || len(some) == 0 {
			t.Fatal("no tool lists: ", err)
		}
		files = append(files, some...)
	}
	number = map[string]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(file, err)
		}
		server := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, tool := range list.Tools {
			number[server+"/"+tool.Name] = len(docs)
			docs = append(docs, Document{Server: server, Tool: tool.Name, Title: tool.Title, Description: tool.Description, InputSchema: tool.InputSchema})
		}
	}
	return docs, number
}

// queriesOf reads "kind | query | server/tool, server/tool" lines.
func queriesOf(t testing.TB, file string, number map[string]int) []labelled {
	raw, err := os.ReadFile(filepath.Join("testdata", "recall", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []labelled
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 3 {
			t.Fatalf("%s: not three parts: %s", file, line)
		}
		q := labelled{kind: parts[0], query: parts[1]}
		for tool := range strings.SplitSeq(parts[2], ", ") {
			doc, ok := number[tool]
			if !ok {
				t.Fatalf("%s: %q: there is no %s", file, q.query, tool)
			}
			q.right = append(q.right, doc)
		}
		all = append(all, q)
	}
	return all
}

// plainBM25 is what a search engine does without further thought: one bag of
// stemmed words for each tool. It is here to be measured against.
type plainBM25 struct {
	counts []map[string]float64
	length []float64
	within map[string]float64 // in how many documents a word is
	mean   float64
}

func newPlainBM25(docs []Document) *plainBM25 {
	p := &plainBM25{within: map[string]float64{}}
	for _, d := range docs {
		bag := map[string]float64{}
		all := slices.Concat(words(d.Server), words(d.Tool), words(d.Title), words(d.Description), parameters(d.InputSchema))
		for _, w := range all {
			bag[w]++
		}
		for w := range bag {
			p.within[w]++
		}
		p.counts, p.length = append(p.counts, bag), append(p.length, float64(len(all)))
		p.mean += float64(len(all)) / float64(len(docs))
	}
	return p
}

func (p *plainBM25) found(query string, limit int) []int {
	const k1, b = 1.2, 0.75
	scores := make([]float32, len(p.counts))
	for doc, bag := range p.counts {
		for _, w := range words(query) {
			if n := bag[w]; n > 0 {
				idf := math.Log(1 + (float64(len(p.counts))-p.within[w]+0.5)/(p.within[w]+0.5))
				scores[doc] += float32(idf * n * (k1 + 1) / (n + k1*(1-b+b*p.length[doc]/p.mean)))
			}
		}
	}
	return best(scores, limit)
}

// recall is the share of queries that find a right tool first, and among the
// first five.
type recall struct{ n, first, five int }

func (r *recall) count(found []int, right []int) {
	r.n++
	for i, doc := range found {
		if slices.Contains(right, doc) {
			r.five++
			if i == 0 {
				r.first++
			}
			return
		}
	}
}

func (r recall) at1() float64 { return float64(r.first) / float64(max(r.n, 1)) }
func (r recall) at5() float64 { return float64(r.five) / float64(max(r.n, 1)) }

type searcher interface {
	found(query string, limit int) []int
}

func measure(s searcher, queries []labelled) map[string]*recall {
	by := map[string]*recall{"all": {}}
	for _, q := range queries {
		if by[q.kind] == nil {
			by[q.kind] = &recall{}
		}
		found := s.found(q.query, 5)
		by[q.kind].count(found, q.right)
		by["all"].count(found, q.right)
	}
	return by
}

// TestRecall prints how often searches find the right tool, and fails if they
// do so less often than they did, less a margin of a few queries.
//
//test:alone
func TestRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	out := io.Discard
	if name := os.Getenv("TOOLCELL_RECALL"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out = f
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for _, part := range []struct {
		name, file string
		folders    []string
		floor      float64
	}{
		{"tuning part", "tune.txt", []string{"tools"}, 0.90},
		{"measuring part: other servers, never tuned on", "measure.txt", []string{"tools"}, 0.83},
		{"fresh part: four more servers, written before the utterances", "fresh.txt", []string{"tools", "fresh"}, 0.68},
		{"second fresh part: five more servers, written last", "fresh2.txt", []string{"tools", "fresh", "fresh2"}, 0.50},
	} {
		docs, number := publicTools(t, part.folders...)
		queries := queriesOf(t, part.file, number)
		plain, ours := measure(newPlainBM25(docs), queries), measure(New(docs), queries)
		fmt.Fprintf(table, "%s (%d queries, %d tools)\n", part.name, len(queries), len(docs))
		fmt.Fprintf(table, "kind\tqueries\tplain BM25 @1\t@5\trecall @1\t@5\n")
		kinds := make([]string, 0, len(ours))
		for kind := range ours {
			kinds = append(kinds, kind)
		}
		sort.Strings(kinds)
		for _, kind := range kinds {
			p, o := plain[kind], ours[kind]
			fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\n", kind, o.n, p.at1(), p.at5(), o.at1(), o.at5())
		}
		fmt.Fprintln(table)
		if got := ours["all"].at5(); got < part.floor {
			t.Errorf("%s: recall@5 is %.3f, want at least %.2f", part.name, got, part.floor)
		}
	}
}

func TestQueriesOfNoSharedWordShareNone(t *testing.T) {
	for _, file := range []string{"tune.txt", "measure.txt", "fresh2.txt"} {
		docs, number := publicTools(t, "tools", "fresh", "fresh2")
		for _, q := range queriesOf(t, file, number) {
			shared := ""
			for _, doc := range q.right {
				d := docs[doc]
				have := slices.Concat(words(d.Server), words(d.Tool), words(d.Title), words(d.Description))
				for _, w := range words(q.query) {
					if slices.Contains(have, w) && shared == "" {
						shared = w
					}
				}
			}
			if q.kind == noShared && shared != "" {
				t.Errorf("%s: %q shares %q", file, q.query, shared)
			}
			if q.kind == "paraphrase" && shared == "" {
				t.Errorf("%s: %q shares nothing", file, q.query)
			}
		}
	}
}
