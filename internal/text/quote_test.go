package text

import "testing"

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/a/b-1": "/a/b-1", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "/$(x)": "'/$(x)'", "": "''"} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
