package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The words of most of these tests have no meaning, so that only where they stand counts.

func TestServerNamesAndDescriptionsCount(t *testing.T) {
	ix := New([]Document{
		{Server: "quonder", ServerDescription: "About zorbak", Tool: "plimmot", Description: "Does it"},
		{Server: "frindel", ServerDescription: "About wexlor", Tool: "plimmot", Description: "Does it"},
		{Server: "frindel", ServerDescription: "About wexlor", Tool: "snaggit", Description: "Does it"},
	})
	for query, want := range map[string][]int{
		"plimmot of frindel": {1, 0, 2},
		"plimmot of quonder": {0, 1},
		"plimmot for wexlor": {1, 0, 2},
		"plimmot for zorbak": {0, 1},
	} {
		if got := ix.found(query, 5); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
}

func TestTheToolWithAllWordsIsFirst(t *testing.T) {
	lines := []string{
		"a/zorbak_zorbak: The zorbak of zorbak (zorbak)",
		"a/other: Has quonder, then zorbak",
	}
	for i := range 8 {
		lines = append(lines, fmt.Sprintf("a/tool%d: Has quonder", i))
	}
	ix, _ := catalogOf(lines...)
	for _, query := range []string{"zorbak quonder", "the zorbak of your quonder", "quonder zorbak quonder"} {
		if got := ix.found(query, 2); !slices.Equal(got, []int{1, 0}) {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

func TestNeitherOrderNorRepetitionOfWordsMatters(t *testing.T) {
	ix, _ := catalogOf(
		"a/zorbak: Has quonder",
		"a/quonder: Has zorbak",
		"a/snaggit: Has zorbak, quonder and frindel",
		"a/frindel: Has quonder",
		"a/frindel_quonder: Has zorbak",
		"a/zorbak_two: Has frindel",
		"a/quonder_two: Has none",
	)
	want := ix.Search("zorbak quonder frindel", 10)
	if len(want) != 7 {
		t.Fatalf("found %v", want)
	}
	for _, query := range []string{"frindel zorbak quonder", "quonder frindel zorbak", "zorbak zorbak quonder frindel frindel"} {
		got := ix.Search(query, 10)
		for i := range got {
			if i >= len(want) || got[i].Doc != want[i].Doc || max(got[i].Score-want[i].Score, want[i].Score-got[i].Score) > 0.001 {
				t.Errorf("%q finds %v, want %v", query, got, want)
				break
			}
		}
	}
}

func TestStopWordsCountOnlyByThemselves(t *testing.T) {
	ix, _ := catalogOf("a/do_it: Has none", "a/zorbak: Has one", "a/on_by: Has none")
	for query, want := range map[string][]int{"zorbak do it by": {1}, "do it": {0}, "on by": {2}, "by": {2}} {
		if got := ix.found(query, 5); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
}

func TestWhatAToolDoesCountsBesidesItsWords(t *testing.T) {
	ix, docs := catalogOf(
		"mail/send_email: Sends a new email (to, subject, body)",
		"mail/draft_email: Drafts a new email (to, subject, body)",
		"mail/read_email: Gets the content of an email (message)",
		"mail/search_emails: Searches emails (query)",
		"mail/delete_email: Deletes an email for good (message)",
		"mail/download_attachment: Saves an attachment of an email (message, path)",
	)
	for query, want := range map[string][]string{
		"send email with attachment":         {"send_email", "download_attachment"},
		"did the bank write to me this week": {"search_emails", "read_email"}, // the second shares no word
		"the meaning of life in a body":      nil,                             // it shares one, and is no answer
	} {
		var names []string
		for _, i := range ix.found(query, 2) {
			names = append(names, docs[i].Tool)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q finds %v, want %v", query, names, want)
		}
	}
}

func TestAVerbAloneFindsToolsWithAnotherWordForIt(t *testing.T) {
	ix, docs := catalogOf(
		"a/bin: Notes deleted, deleted or deleted",
		"a/notes: Delete a note",
		"a/drop_zorbak: Begins with another word",
		"a/start_plimmot: Has none",
	)
	for query, want := range map[string]string{
		"delete":    "notes drop_zorbak bin",
		"uninstall": "notes drop_zorbak",
		"purging":   "notes drop_zorbak",
		"launch":    "start_plimmot",
		"send":      "",
	} {
		var names []string
		for _, i := range ix.found(query, 5) {
			names = append(names, docs[i].Tool)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}
