package edit

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/toolcell/toolcell/internal/toml"
)

// A statement is a header or a key with its value.
type statement struct {
	path       []string // of the table, or of the key with its table's
	header     bool
	start, end int // its lines
	value      int // where the value begins
	tail       int // where it ends
}

// statements cuts a text up. It is known to be TOML.
func statements(data []byte) (all []statement, err error) {
	var table []string
	for at := 0; at < len(data); {
		line := bytes.TrimSpace(data[at:nextLine(data, at)])
		if len(line) == 0 || line[0] == '#' {
			at = nextLine(data, at)
			continue
		}
		s := statement{start: at, header: line[0] == '['}
		if s.header {
			s.end = nextLine(data, skipValue(data, at))
			if s.path, err = keyOf(string(line), "\n"); err != nil {
				return nil, err
			}
			table = s.path
		} else {
			equals := skipKey(data, at)
			key, err := keyOf(string(data[at:equals]), "= 0\n")
			if err != nil {
				return nil, err
			}
			s.path = append(slices.Clone(table), key...)
			s.value = equals + 1 + len(data[equals+1:]) - len(bytes.TrimLeft(data[equals+1:], " \t"))
			s.tail = skipValue(data, s.value)
			s.end = nextLine(data, s.tail)
		}
		all = append(all, s)
		at = s.end
	}
	return all, nil
}

// keyOf reads a key, quoted or dotted as it may be.
func keyOf(text, rest string) ([]string, error) {
	keys := toml.Keys([]byte(text+rest), math.MaxInt)
	if len(keys) == 0 {
		return nil, errors.New("is not TOML that can be changed; change it by hand")
	}
	return keys[0], nil
}

// skipKey finds the equals sign behind a key.
func skipKey(data []byte, at int) int {
	for ; at < len(data) && data[at] != '='; at++ {
		if q := data[at]; q == '"' || q == '\'' {
			at = skipString(data, at) - 1
		}
	}
	return at
}

// skipValue finds the end of a value: of the line, but for what is within
// strings and brackets.
func skipValue(data []byte, at int) int {
	depth, end := 0, at
	for at < len(data) {
		switch c := data[at]; c {
		case '"', '\'':
			at = skipString(data, at)
			end = at
			continue
		case '#':
			if depth == 0 {
				return end
			}
			at = nextLine(data, at)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return end
			}
		}
		if c := data[at]; c > ' ' {
			end = at + 1
		}
		at++
	}
	return end
}

// skipString finds the end of a string in any of the four ways to write one.
func skipString(data []byte, at int) int {
	q := data[at]
	triple := bytes.Repeat([]byte{q}, 3)
	if bytes.HasPrefix(data[at:], triple) {
		for at += 3; at < len(data) && !bytes.HasPrefix(data[at:], triple); at++ {
			if data[at] == '\\' && q == '"' {
				at++
			}
		}
		for at += 3; at < len(data) && data[at] == q; at++ { // up to two more belong to it
		}
		return min(at, len(data))
	}
	for at++; at < len(data) && data[at] != q && data[at] != '\n'; at++ {
		if data[at] == '\\' && q == '"' {
			at++
		}
	}
	return min(at+1, len(data))
}

func within(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
