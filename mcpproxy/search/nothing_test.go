package search

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// someTools reads the tools of some servers of testdata/recall/tools.
func someTools(t *testing.T, servers ...string) []Document {
	all, _ := publicTools(t, "tools")
	return slices.DeleteFunc(all, func(d Document) bool { return !slices.Contains(servers, d.Server) })
}

//test:alone
func TestSearchFindsNothingIfNoToolAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it searches the tools of many servers")
	}
	for name, servers := range map[string][]string{
		"files":  {"filesystem", "memory", "everything"},
		"code":   {"github", "slack", "filesystem", "git"},
		"ops":    {"kubernetes", "argocd", "datadog", "circleci"},
		"tables": {"mongodb", "airtable", "excel", "chart"},
		"one":    {"git"},
	} {
		ix := New(someTools(t, servers...))
		for _, query := range []string{"pizza", "book a flight to Paris", "how are you", "sushi", "thanks a lot", "what is the meaning of life"} {
			if hits := ix.Search(query, 5); len(hits) > 0 {
				t.Errorf("%s: %q finds %v", name, query, hits)
			}
		}
		for _, part := range []struct {
			file string
			most float64 // of the queries that find something all the same
		}{{"nothing-tune.txt", 0.15}, {"nothing-measure.txt", 0.15}} {
			raw, err := os.ReadFile(filepath.Join("testdata", "recall", part.file))
			if err != nil {
				t.Fatal(err)
			}
			n, found := 0.0, 0.0
			for line := range strings.Lines(string(raw)) {
				if line[0] == '#' {
					continue
				}
				if n++; len(ix.Search(line, 5)) > 0 {
					found++
				}
			}
			if t.Logf("%s: %.0f of %.0f of %s", name, found, n, part.file); found/n > part.most {
				t.Errorf("%s: %.0f of %.0f queries of %s find something", name, found, n, part.file)
			}
		}
	}
}

// TestToDoIsAWordAndMeansATask: split up, it would be two stop words, and the query
// a verb alone.
func TestToDoIsAWordAndMeansATask(t *testing.T) {
	for name, docs := range map[string][]Document{
		"with the word": {
			{Server: "tasks", Tool: "list_tasks", Description: "List the tasks of my to-do list, with priority and due date."},
			{Server: "tasks", Tool: "add_task", Description: "Add a task to my to-do list."},
			{Server: "tasks", Tool: "complete_task", Description: "Mark a task of my to-do list as done."},
		},
		"without it": {
			{Server: "work", Tool: "list_tasks", Description: "Lists all."},
			{Server: "work", Tool: "add_task", Description: "Adds one."},
			{Server: "work", Tool: "complete_task", Description: "Marks one as done."},
		},
		"only the word": {
			{Server: "x", Tool: "getTodos", Description: "Get all."},
			{Server: "x", Tool: "addTodo", Description: "Add one."},
			{Server: "x", Tool: "dropTodo", Description: "Drop one."},
		},
	} {
		ix := New(docs)
		for query, first := range map[string]bool{"make a new to-do": true, "add a To-Do": true, "create todo": true, "add a task": true, "my to-dos": false, "new tasks": false} {
			hits := ix.Search(query, 5)
			if len(hits) == 0 || first && hits[0].Doc != 1 {
				t.Errorf("%s: %q finds %v, want %s first: %v", name, query, hits, docs[1].Tool, first)
			}
		}
		for _, query := range []string{"pizza", "make a new pizza", "how are you", "what shall we do", "book a flight to Paris"} {
			if hits := ix.Search(query, 5); len(hits) > 0 {
				t.Errorf("%s: %q finds %v", name, query, hits)
			}
		}
	}
}

func TestScoresSayHowWellToolsFit(t *testing.T) {
	docs, _ := publicTools(t, "tools")
	ix := New(docs)
	for _, query := range []string{"create issue", "list pull requests", "browser click", "delete", "send a message to a channel"} {
		hits := ix.Search(query, 20)
		if len(hits) == 0 || hits[0].Score < 0.5 {
			t.Errorf("%q: %v", query, hits)
		}
		last := 1.0
		for _, h := range hits {
			if h.Score > last || h.Score <= 0 {
				t.Errorf("%q: %v after %v", query, h.Score, last)
			}
			last = h.Score
		}
	}
}

//test:alone
func TestOneVerbFindsToolsThatDoIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it searches the tools of many servers")
	}
	check := func(docs []Document, verb string, ok func(Document) bool) {
		t.Helper()
		left := 0
		for _, d := range docs {
			if ok(d) {
				left++
			}
		}
		hits := New(docs).Search(verb, 5)
		if len(hits) < min(left, 5) {
			t.Errorf("%q finds %d tools of %d", verb, len(hits), left)
		}
		for i, h := range hits[:min(len(hits), left)] {
			if !ok(docs[h.Doc]) {
				t.Errorf("%q finds %s/%s at place %d, with %d that do it", verb, docs[h.Doc].Server, docs[h.Doc].Tool, i+1, left)
			}
		}
	}
	docs, _ := publicTools(t, "tools")
	for _, verb := range []string{"create", "list", "delete", "search", "update", "Add", "get", "send", "lists", "deleting"} {
		want := stem(strings.ToLower(verb))
		check(docs, verb, func(d Document) bool { return verbOf(words(d.Tool)) == want })
	}
	_, few := catalogOf("a/find_user: Find a user", "a/create_search: Save a search", "a/lookup: Anything", "a/delete_search: Drop a saved search",
		"a/tree: Search all folders", "a/get_search_results: Get what a search found", "a/ping: Say hello")
	check(few, "search", func(d Document) bool { return slices.Contains([]string{"find_user", "lookup", "tree"}, d.Tool) })
}
