package toon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const generatedValues = 6000

// TestTOONOfGeneratedValues has thousands of values of all shapes encoded by the
// reference encoder from npm, and decoded again by its decoder.
func TestTOONOfGeneratedValues(t *testing.T) {
	if testing.Short() {
		t.Skip("it gives thousands of values to a program from npm")
	}
	dir := os.Getenv("TOOLCELL_TEST_NPM")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@toon-format", "toon")); dir == "" || err != nil {
		t.Skip("needs Node.js and npm: apt-get install nodejs npm, then make test")
	}
	g := generator{rand.New(rand.NewPCG(7, 11))}
	var values, pairs bytes.Buffer
	var ours []string
	for n := range generatedValues {
		value := `{"v":` + g.value(n%7) + "}"
		if n%2 == 0 {
			value = g.object(g.IntN(6), func(int) string { return g.value(n % 7) })
		}
		toon, err := Marshal([]byte(value))
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		text, _ := json.Marshal(toon) // a text always encodes
		fmt.Fprintln(&values, value)
		fmt.Fprintf(&pairs, "[%s,%s]\n", value, text)
		ours = append(ours, toon)
	}
	theirs := askReference[string](t, dir, "encode", &values)
	back := askReference[bool](t, dir, "decode", bytes.NewBuffer(bytes.Clone(pairs.Bytes())))
	lines := strings.Split(pairs.String(), "\n")
	wrong := 0
	for n, toon := range ours {
		if toon == theirs[n] && back[n] {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%s\nours:\n%s\nthe reference encoder's:\n%s\nits decoder gives the value back: %v", lines[n], toon, theirs[n], back[n])
		}
	}
	t.Logf("%d of %d values are as the reference encodes them", len(ours)-wrong, len(ours))
}

// askReference gives the answers of testdata/reference.mjs.
func askReference[T any](t *testing.T, dir, what string, in *bytes.Buffer) []T {
	t.Helper()
	c := exec.CommandContext(t.Context(), "node", "testdata/reference.mjs", dir, what)
	var errs bytes.Buffer
	c.Stdin, c.Stderr = in, &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, errs.String())
	}
	answers := make([]T, generatedValues)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(answers) {
		t.Fatalf("%d answers to %d values", len(lines), len(answers))
	}
	for n, line := range lines {
		if err := json.Unmarshal([]byte(line), &answers[n]); err != nil {
			t.Fatalf("answer %q: %v", line, err)
		}
	}
	return answers
}

// A generator makes JSON. It makes no integer beyond 2^53, of which JavaScript
// loses digits and we do not, and no key that is a number, which JavaScript puts
// before the others.
type generator struct{ *rand.Rand }

func (g generator) value(depth int) string {
	if depth == 0 {
		return g.leaf()
	}
	switch g.IntN(9) {
	case 0:
		return g.leaf()
	case 1:
		return g.list(g.IntN(6), g.leaf)
	case 2, 3:
		return g.list(g.IntN(5), func() string { return g.value(depth - 1) })
	case 4, 5:
		return g.object(g.IntN(6), func(int) string { return g.value(depth - 1) })
	case 6:
		return g.rows(depth)
	case 7: // an object of uniform objects
		keys := g.keys(1 + g.IntN(4))
		return g.object(g.IntN(5), func(int) string { return g.row(keys, depth) })
	}
	return []string{"{}", "[]", "[[]]", "[{}]", `{"a":{}}`, `{"a":[]}`, "[[],{}]", `[{"a":[]},{"a":[]}]`}[g.IntN(8)]
}

// rows are uniform, but for the order of keys, and sometimes one is spoilt.
func (g generator) rows(depth int) string {
	keys := g.keys(1 + g.IntN(5))
	spoilt := g.IntN(4) == 0
	return g.list(1+g.IntN(6), func() string {
		if spoilt && g.IntN(3) == 0 {
			return g.value(depth - 1)
		}
		return g.row(keys, depth)
	})
}

func (g generator) row(keys []string, depth int) string {
	fields := make([]string, len(keys))
	for i, key := range keys {
		value := g.leaf()
		if i == 0 && len(keys) > 3 { // a group of fields
			value = `{"p":` + g.leaf() + `,"q":{"r":` + g.leaf() + `}}`
		}
		if g.IntN(60) == 0 {
			value = g.value(depth - 1)
		}
		fields[i] = key + ":" + value
	}
	if g.IntN(4) == 0 {
		g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func (g generator) list(n int, item func() string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item()
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (g generator) object(n int, value func(int) string) string {
	fields := g.keys(n)
	for i := range fields {
		fields[i] += ":" + value(i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// keys are distinct.
func (g generator) keys(n int) []string {
	seen, keys := map[string]bool{}, []string{}
	for len(keys) < n {
		key := []string{"id", "name", "a_b", "a.b", "A1", "_x", ""}[g.IntN(7)]
		if g.IntN(3) == 0 {
			key = g.text()
		}
		if digits := strings.Trim(key, "0123456789"); seen[key] || digits == "" && key != "" || key == "__proto__" {
			key = fmt.Sprintf("k%d", len(keys))
		}
		if !seen[key] {
			seen[key] = true
			text, _ := json.Marshal(key)
			keys = append(keys, string(text))
		}
	}
	return keys
}

func (g generator) leaf() string {
	switch g.IntN(8) {
	case 0:
		return []string{"null", "true", "false"}[g.IntN(3)]
	case 1:
		return fmt.Sprint(g.IntN(1000) - 500)
	case 2:
		return fmt.Sprint(g.Int64N(1<<53) - 1<<52)
	case 3:
		return []string{"-0", "0", "0.0", "-0.0", "1.0", "1e3", "1E-7", "0.1", "-1.50", "1e21", "1e20", "123456789012345680000", "5e-324", "1.7976931348623157e308", "1e-6", "9.999e-7"}[g.IntN(16)]
	case 4:
		return g.float()
	}
	text, _ := json.Marshal(g.text())
	return string(text)
}

// float is any number that is one: big, tiny or of many digits.
func (g generator) float() string {
	for {
		f := math.Float64frombits(g.Uint64())
		if g.IntN(2) == 0 {
			f = (g.Float64() - 0.5) * math.Pow10(g.IntN(30)-8)
		}
		// An integer that large has digits that only JavaScript leaves out.
		if !math.IsNaN(f) && !math.IsInf(f, 0) && (f != math.Trunc(f) || math.Abs(f) < 1<<53 || math.Abs(f) >= 1e21) {
			text, _ := json.Marshal(f)
			return string(text)
		}
	}
}

// text is often something that has to be quoted, or looks like it.
func (g generator) text() string {
	parts := []string{
		"a", "Z", "word", "two words", " ", "  ", "\t", "\n", "\r", ",", ":", ": ", "\"", "'", "\\", "[", "]", "{", "}", "[2]", "{x}", "-", "- ", "#",
		"|", ";", "/", "<&>", "0", "7", "-1", "+1", "1.5", "1e5", ".5", "05", "true", "false", "null", "é", "日本", "😀", "\u00a0", "\u2028", "\ufeff",
		"\u0000", "\u0001", "\u007f", "\u0085", "١", "e\u0301", "$", "_", "=", "a.b", "a-b", "2026-01-02T03:04:05Z",
	}
	var b strings.Builder
	for range g.IntN(4) {
		b.WriteString(parts[g.IntN(len(parts))])
	}
	return b.String()
}
