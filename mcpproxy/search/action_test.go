package search

import (
	"slices"
	"testing"
)

func TestOneVerbFindsWhatDoesItThenWhatDoesTheSame(t *testing.T) {
	files := []string{
		"files/get_deleted_items: Get what was deleted",
		"files/remove_file: Remove a file",
		"files/read_file: Read a file",
		"files/delete_all_old_versions_of_one_big_file: Take them away",
	}
	inOrder := []string{"delete_all_old_versions_of_one_big_file", "remove_file", "get_deleted_items"}
	for name, tt := range map[string]struct {
		query   string
		catalog []string
		want    []string
	}{
		"its own word":         {"delete", files, inOrder},
		"with stop words":      {"to delete it", files, inOrder},
		"no tool has the word": {"uninstall", []string{"a/delete_file: Take it away", "a/read_file: Read it"}, []string{"delete_file"}},
		"another has it all over": {
			"delete",
			[]string{"delete/remove_delete: Delete, delete (delete)", "files/delete_all_old_versions_of_one_big_file: Take them away"},
			[]string{"delete_all_old_versions_of_one_big_file", "remove_delete"},
		},
		"a thing as well": {"the labels to add", []string{"a/add_user: Add a user", "a/labels: Labels"}, []string{"labels", "add_user"}},
		"no tools":        {"delete", nil, nil},
	} {
		if got := toolsFound(tt.query, tt.catalog...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q finds %q, want %q", name, tt.query, got, tt.want)
		}
	}
}

func TestTheRightActionComesFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		query, other, first string
	}{
		"of the query's verb": {"update the old frob", "stop_old_frob", "change_old_frob"},
		"of what people mean": {"do I need an umbrella", "update_forecast", "retrieve_forecast"},
	} {
		if got := toolsFound(tt.query, "a/"+tt.other+": It", "a/"+tt.first+": It"); len(got) == 0 || got[0] != tt.first {
			t.Errorf("%s: %q finds %q, want %s first", name, tt.query, got, tt.first)
		}
	}
	if got := toolsFound("frob", "a/list_frob: It", "a/thing_frob: It"); len(got) != 2 || got[0] != "list_frob" {
		t.Errorf("a query of no action finds %q: equal tools do not keep their order", got)
	}
}
