package text

import "testing"

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/a/b-1": "/a/b-1", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "/$(x)": "'/$(x)'", "": "''", "/a\n\x1bb": "'/a b'"} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

func TestListsNameSomeAndCountTheRest(t *testing.T) {
	names := []string{"a", "b\"c", "d"}
	for n, want := range map[int]string{1: `"a" and 2 more`, 2: `"a", "b\"c" and 1 more`, 3: `"a", "b\"c", "d"`, 4: `"a", "b\"c", "d"`} {
		if got := QuoteList(names, n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
