package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A flood is an expression of Python for more text than a result has room for.
type flood struct {
	name, python string
	most         int // tokens, however the result is written
}

// floods are what code prints when it prints too much. The bounds of prose and digits
// are promised; the others hold what was measured, since no text is as short in tokens
// as in bytes.
func floods(t *testing.T) []flood {
	t.Helper()
	prose, err := json.Marshal(docsProse(t))
	if err != nil {
		t.Fatal(err)
	}
	const random = `__import__("random").Random(1)`
	return []flood{
		{"English prose", string(prose) + " * 4", 10_000},
		{"digits", `"".join(` + random + `.choices("0123456789", k=200_000))`, 16_000},
		{"lines of digits", `"\n".join(f"{n * 7919 ** 9}" for n in range(5_000))`, 16_000},
		{"a list of decimal fractions", `str([round(n * 0.7310585 % 1, 6) for n in range(20_000)])`, 25_000},
		{"base64", `__import__("base64").b64encode(` + random + `.randbytes(200_000)).decode()`, 25_000},
		{"Chinese", `"天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏" * 2_000`, 16_000},
		{"control characters", `"".join(map(chr, ` + random + `.choices(range(1, 9), k=200_000)))`, 25_000},
		{"hieroglyphs", `"".join(map(chr, ` + random + `.choices(range(0x13000, 0x13430), k=60_000)))`, 34_000},
		{"lines of one letter", `"a\n" * 60_000`, 60_000},
	}
}

// docsProse returns the paragraphs of some of our documents.
func docsProse(t *testing.T) string {
	t.Helper()
	var prose strings.Builder
	for _, name := range []string{"security.md", "guide.md", "servers.md", "architecture.md"} {
		text, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if len(line) > 60 && !strings.ContainsAny(line, "|`") {
				prose.WriteString(line)
			}
		}
	}
	return prose.String()
}

// worstResults writes a table of what a result costs at most: the code prints each
// flood to both streams and has it as its value, so the result has no room left.
func worstResults(t *testing.T, h *host, tokens func(string) int) string {
	t.Helper()
	all, modes := floods(t), []string{"compact", "toon", "json"}
	costs := make([][]int, len(all))
	for _, mode := range modes {
		c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_OUTPUT": mode})
		for i, f := range all {
			r := c.python(t, "import sys\nx = "+f.python+"\nprint(x)\nprint(x, file=sys.stderr)\nx")
			if r.isError {
				t.Fatalf("%s, %s: %.300s", f.name, mode, r.text)
			}
			var mirror bytes.Buffer
			enc := json.NewEncoder(&mirror)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r.fields); err != nil {
				t.Fatal(err)
			}
			costs[i] = append(costs[i], tokens(r.text))
			if mode == modes[len(modes)-1] {
				costs[i] = append(costs[i], tokens(mirror.String()))
			}
		}
		c.Close()
	}
	var rows strings.Builder
	rows.WriteString("| at worst, of 32 KiB\t `compact`\t `toon`\t `json`\t structured content\t\n|---\t---\t---\t---\t---\t\n")
	for i, f := range all {
		fmt.Fprintf(&rows, "| %s\t", f.name)
		for _, n := range costs[i] {
			fmt.Fprintf(&rows, " %d\t", n)
			if n >= f.most {
				t.Errorf("%s: a result costs %v tokens, and less than %d is promised", f.name, costs[i], f.most)
			}
		}
		rows.WriteString("\n")
	}
	return rows.String()
}
