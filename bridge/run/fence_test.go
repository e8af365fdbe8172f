package run

import (
	"strings"
	"testing"
)

func TestFenceAroundCodeIsRemoved(t *testing.T) {
	for name, tt := range map[string]struct{ code, want string }{
		"python":               {"```python\nprint(1)\n```", "\nprint(1)\n"},
		"nothing behind it":    {"```\nprint(1)\n```", "\nprint(1)\n"},
		"py":                   {"```py\nprint(1)\n```\n", "\nprint(1)\n\n"},
		"Python3":              {"``` Python3 \nprint(1)\n```  ", "\nprint(1)\n"},
		"a title":              {"```python title=\"x.py\"\nprint(1)\n```", "\nprint(1)\n"},
		"pandoc's":             {"```{.python}\nprint(1)\n```", "\nprint(1)\n"},
		"blank lines":          {"\n \n```python\n\nprint(1)\n\n```\n\n", "\n \n\n\nprint(1)\n\n\n\n"},
		"CRLF":                 {"```python\r\nprint(1)\r\n```\r\n", "\nprint(1)\r\n\n"},
		"tildes":               {"~~~python\nprint(1)\n~~~", "\nprint(1)\n"},
		"long":                 {"`````python\ns = '''\n```\n'''\n`````", "\ns = '''\n```\n'''\n"},
		"closed by a long one": {"```python\nprint(1)\n`````", "\nprint(1)\n"},
		"indented":             {"  ```python\n  if x:\n      f()\n  ```", "\nif x:\n    f()\n"},
		"indented, not closed": {"  ```python\n  x = 1\n  y", "\nx = 1\ny"},
		"not closed":           {"```python\nprint(1)", "\nprint(1)"},
		"alone":                {"```python", ""},
		"a fence in it":        {"```python\ns = '''\n```\nx\n```\n'''\n```", "\ns = '''\n```\nx\n```\n'''\n"},
	} {
		if got := withoutFence(tt.code); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if got := withoutFence(tt.code); strings.Count(got, "\n") != strings.Count(tt.code, "\n") {
			t.Errorf("%s: the lines are not where they were: %q", name, got)
		}
	}
	for _, code := range []string{
		"s = '''\n```python\nx\n```\n'''", "'''\n```python\n'''", "# ```python\nprint(1)\n# ```", "print(1)", "", " \n", "~~~x\nprint(1)", "~~~python\nprint(1)",
		"~~~1", "```bash\nls\n```", "```json\n{}\n```", "``x``", "x = 1\n```python\ny\n```", "    ```python\n    x\n    ```",
	} {
		if got := withoutFence(code); got != code {
			t.Errorf("%q became %q", code, got)
		}
	}
}

// TestFencedCodeRuns, with the line numbers of what was sent.
func TestFencedCodeRuns(t *testing.T) {
	s := newServer(t, nil, nil)
	r := runCode(t, s, "\n```python\nprint('on')\n1 / 0\n```\n")
	if text := strings.Join(r.Stderr, "\n"); !strings.Contains(text, `"<run_python>", line 4, in <module>`+"\n    1 / 0") || r.Stdout[0] != "on" {
		t.Error(text)
	}
	if r := runCode(t, s, "\ufeffprint('marked')"); r.IsError() || r.Stdout[0] != "marked" {
		t.Errorf("code that begins with a byte order mark: %+v", r)
	}
	if r := runCode(t, s, "```python\n\n```"); r.Status != StatusValidation {
		t.Errorf("%+v", r)
	}
}
