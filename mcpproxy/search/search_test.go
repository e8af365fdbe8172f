package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// catalogOf makes an index of "server/tool: description (parameter, …)" lines.
func catalogOf(lines ...string) (*Index, []Document) {
	var docs []Document
	for _, line := range lines {
		head, description, _ := strings.Cut(line, ": ")
		server, tool, _ := strings.Cut(head, "/")
		description, params, _ := strings.Cut(strings.TrimSuffix(description, ")"), " (")
		props := map[string]any{}
		for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == ',' || r == ' ' }) {
			props[p] = map[string]any{"type": "string"}
		}
		schema, _ := json.Marshal(map[string]any{"properties": props})
		docs = append(docs, Document{Server: server, Tool: tool, Description: description, InputSchema: schema})
	}
	return New(docs), docs
}

func TestSearchRanksTheFittingToolFirst(t *testing.T) {
	ix, docs := catalogOf(
		"github/create_issue: Open a new issue in a repository (owner, repo, title, body)",
		"github/list_issues: List the issues of a repository (owner, repo, state)",
		"github/createPullRequest: Open a pull request (owner, repo, head, base)",
		"files/read_file: Read the complete contents of a file from the file system (path)",
		"files/write-file: Create or overwrite a file (path, content)",
		"files/list_directory: List what is in a directory (path)",
		"weather/get_forecast: Weather forecast for a place (latitude, longitude)",
		"db/query: Run an SQL query against PostgreSQL (sql)",
		"mail/send_message: Send an e-mail, for instance about an issue with a file (recipient, subject)",
	)
	for _, tt := range []struct{ query, want string }{
		{"create issue", "create_issue"},
		{"creating issues", "create_issue"},
		{"how do I list the issues of a GitHub repository", "list_issues"},
		{"open a pull request", "createPullRequest"},
		{"READ_FILE", "read_file"},
		{"readFile", "read_file"},
		{"write file content", "write-file"},
		{"forecast", "get_forecast"},
		{"foreacst", "get_forecast"}, // a typo
		{"postgr", "query"},          // a beginning
		{"latitude", "get_forecast"}, // a parameter
		{"github pull", "createPullRequest"},
		{"list directories", "list_directory"},
		{"recipient subject", "send_message"},
		{"sending messages xyzzy", "send_message"}, // one word that no tool has does not hide the rest
	} {
		got := ix.found(tt.query, 5)
		if len(got) == 0 || docs[got[0]].Tool != tt.want {
			var names []string
			for _, i := range got {
				names = append(names, docs[i].Tool)
			}
			t.Errorf("%q finds %v, want %s first", tt.query, names, tt.want)
		}
	}
	if got := ix.found("xyzzy", 5); len(got) != 0 {
		t.Errorf("nonsense finds %v", got)
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("s%d/do_thing: The same words", i%7))
	}
	first, _ := catalogOf(lines...)
	want := first.found("thing words", 50)
	for range 5 {
		ix, _ := catalogOf(lines...)
		if got := ix.found("thing words", 50); !slices.Equal(got, want) {
			t.Fatalf("the order changed: %v, then %v", want, got)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"createIssue":            "creat issu createissu",
		"HTTPServer list_URLs":   "http server httpserver list url",
		"get-pid42":              "get pid 42 pid42",
		"searches, boxes; files": "search box file",
		"running stopped":        "run stop",
		"queries ashes asses":    "query ash ass",
		"the of":                 "the of",
		"Ärger ÜBER":             "ärger über",
		"日本語":                    "日本語",
		" \t\n--":                "",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("words(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSearchIsFastOverManyTools(t *testing.T) {
	if testing.Short() {
		t.Skip("it indexes thousands of tools")
	}
	var docs []Document
	for i := range 5000 {
		docs = append(docs, Document{Server: "s", Tool: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("some words here ", 20)})
	}
	ix := New(docs)
	start := time.Now()
	ix.found(strings.Repeat("misspeled queryy wordz ", 40), 50)
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestSearchTakesStopWordsIfThereIsNothingElse(t *testing.T) {
	ix, docs := catalogOf("a/who_is: Who is it (x)", "a/send: Send a letter (x)")
	if got := ix.found("who is it", 1); len(got) != 1 || docs[got[0]].Tool != "who_is" {
		t.Errorf("found %v", got)
	}
}

func TestSearchFindsWhatIsMeant(t *testing.T) {
	ix, docs := catalogOf(
		"files/delete_file: Delete a file (path)",
		"files/read_file: Read a file (path)",
		"mail/send_email: Send an email (recipient)",
		"weather/get_forecast: Weather forecast for a place (latitude)",
		"music/play_track: Play a track (id)",
		"shop/refund_payment: Refund a payment (id)",
	)
	for query, want := range map[string]string{
		"get rid of a document":            "delete_file",
		"erase it":                         "delete_file",
		"write a letter to my aunt":        "send_email",
		"will it rain tomorrow":            "get_forecast",
		"put on a song":                    "play_track",
		"give the customer his money back": "refund_payment",
		"do i need an umbrella":            "get_forecast",
		"emial to bob":                     "send_email",
	} {
		if got := ix.found(query, 5); len(got) == 0 || docs[got[0]].Tool != want {
			t.Errorf("%q finds %v, want %s first", query, got, want)
		}
	}
}
