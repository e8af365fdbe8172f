package repl

import "strings"

// A block is code that is typed line by line, up to where Python's own prompt
// would run it: a statement that needs no more lines at once, a compound one, such
// as a loop, after an empty line. Only for what Python itself waits for does it
// wait: a line that is wrong is handed on, and Python says so. It does not ask
// Python's codeop, which docs/architecture.md gives the reasons for.
type block struct {
	lines    []string
	open     int    // brackets
	quote    string // of the string that continues on the next line
	joined   bool   // the last line ends with a backslash
	compound bool   // ends with an empty line
	body     bool   // of the compound statement has begun
	header   bool   // it is one of PEP 723, which names packages: comments that count
}

// opens are the words that begin a compound statement even if it is all on one
// line. The others of them show by the colon at their end.
var opens = map[string]bool{
	"if": true, "for": true, "while": true, "with": true, "try": true, "def": true, "class": true, "async": true,
}

// follows are the words that go on with a compound statement.
var follows = map[string]bool{"else": true, "elif": true, "except": true, "finally": true}

// empty reports whether nothing waits for more lines.
func (b *block) empty() bool { return len(b.lines) == 0 }

// paste is add for a line whose end was pasted: an empty one ends no block.
func (b *block) paste(line string) (ready []string) {
	if !b.empty() && strings.TrimSpace(line) == "" {
		b.lines = append(b.lines, line)
		return nil
	}
	return b.add(line)
}

// add takes one more line, and returns the pieces of code that can run now.
func (b *block) add(line string) (ready []string) {
	if b.header || b.empty() && line == "# /// script" {
		return b.addToHeader(line)
	}
	if b.quote == "" && b.open == 0 && !b.joined {
		text := strings.TrimSpace(line)
		word := firstWord(text)
		switch {
		case text == "":
			return b.flush()
		case strings.HasPrefix(text, "#") && b.empty():
			return nil // nothing to run
		case b.empty():
			b.compound = opens[word] || text[0] == '@'
		case line[0] == ' ' || line[0] == '\t':
			b.body = true
		case b.body && !follows[word] && text[0] != '#':
			// Pasted code continues without an empty line.
			ready = b.flush()
			return append(ready, b.add(line)...)
		}
	}
	b.lines = append(b.lines, line)
	b.scan(line)
	if b.quote == "" && b.open == 0 && !b.joined && !b.compound {
		ready = append(ready, b.flush()...)
	}
	return ready
}

// addToHeader takes a line of a header, which is a block of its own. If another line
// comes before its end, what reads headers says so.
func (b *block) addToHeader(line string) (ready []string) {
	if !strings.HasPrefix(line, "#") {
		return append(b.flush(), b.add(line)...)
	}
	b.header = true
	b.lines = append(b.lines, line)
	if line == "# ///" {
		return b.flush()
	}
	return nil
}

// flush returns what there is, complete or not, and begins anew.
func (b *block) flush() []string {
	lines := b.lines
	*b = block{}
	if len(lines) == 0 {
		return nil
	}
	return []string{strings.Join(lines, "\n") + "\n"}
}

func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'z') })
	if end < 0 {
		return text
	}
	return text[:end]
}

// scan follows brackets and strings through a line.
func (b *block) scan(line string) {
	b.joined = false
	last := byte(0) // character that is neither space nor comment
	for i := 0; i < len(line); {
		if b.quote != "" {
			i = b.scanString(line, i)
			last = '"'
			continue
		}
		c := line[i]
		switch c {
		case '#':
			i = len(line)
			continue
		case '\'', '"':
			b.quote = string(c)
			if strings.HasPrefix(line[i:], strings.Repeat(string(c), 3)) {
				b.quote = strings.Repeat(string(c), 3)
			}
			i += len(b.quote)
			if i == len(line) && len(b.quote) == 1 {
				b.quote = "" // it never ends: Python says so
			}
			continue
		case '(', '[', '{':
			b.open++
		case ')', ']', '}':
			b.open = max(0, b.open-1)
		case '\\':
			b.joined = i == len(line)-1
		}
		if c != ' ' && c != '\t' {
			last = c
		}
		i++
	}
	if last == ':' && b.open == 0 && b.quote == "" {
		b.compound = true
	}
}

// scanString advances to the end of the open string, or of the line.
func (b *block) scanString(line string, i int) int {
	for ; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			if i >= len(line) {
				return i // the string continues, whatever its quotes are
			}
			continue
		}
		if strings.HasPrefix(line[i:], b.quote) {
			i += len(b.quote)
			b.quote = ""
			return i
		}
	}
	if len(b.quote) == 1 {
		b.quote = "" // it never ends: Python says so
	}
	return i
}
