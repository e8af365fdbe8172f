package pins

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// A Definition is a server's definition of a tool, as pins compare it.
type Definition struct {
	Name   string
	Digest string // SHA-256, in hexadecimal, of all of it in canonical form
	Shown  Shown
	Hidden []string // where it has hidden characters, and which
	Hints  Hints
}

// Shown is a definition for a person to read: its members but for the name, each cut to a size.
type Shown map[string]string

// members are the parts of a definition that count.
var members = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

const (
	maxShown  = 16 << 10 // bytes of one member that are kept
	maxNamed  = 8        // hidden characters that are named, of one member
	maxHidden = 1000     // and counted
)

// Define reads the definition of a tool as the server sent it. The order of members
// and white space do not count, nor do escapes in strings. All else does: members
// that JSON has twice are compared in their order, since readers differ in which
// of them they take. Define returns an error if raw is not a JSON object.
func Define(raw json.RawMessage) (Definition, error) {
	all, err := rawjson.Members(raw)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Shown: Shown{}}
	whole := sha256.New()
	for _, name := range members {
		// Package encoding/json takes names in any case.
		var values []json.RawMessage
		for _, m := range all {
			if strings.EqualFold(m.Name, name) {
				values = append(values, m.Value)
			}
		}
		if len(values) == 1 && (rawjson.IsNull(values[0]) || string(values[0]) == `""`) {
			values = nil // which says as much as no member
		}
		writePart(whole, name)
		for _, value := range values {
			if !rawjson.NestsAtMost(value, rawjson.MaxDepth) {
				return Definition{}, fmt.Errorf("%q is not JSON", name)
			}
			r := reader{rawjson.Scanner{Text: value}, nil}
			sum := r.digest()
			whole.Write(sum[:])
			d.add(name, value, r.hidden)
		}
	}
	d.Digest = hex.EncodeToString(whole.Sum(nil))
	return d, nil
}

// add adds one member for people to read.
func (d *Definition) add(name string, value json.RawMessage, hidden []rune) {
	var txt string
	if json.Unmarshal(value, &txt) != nil {
		txt = string(value)
	}
	if name == "name" {
		d.Name = txt
	} else {
		d.Shown[name] = text.Bound(txt, maxShown)
	}
	if len(hidden) == 0 {
		return
	}
	var codes []string
	for _, r := range hidden[:min(len(hidden), maxNamed)] {
		codes = append(codes, fmt.Sprintf("U+%04X", r))
	}
	said := name + ": " + strings.Join(codes, " ")
	if more := len(hidden) - maxNamed; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	if len(d.Hidden) < len(members) {
		d.Hidden = append(d.Hidden, said)
	}
}

// size is how many bytes it takes.
func (s Shown) size() (bytes int) {
	for _, part := range s {
		bytes += len(part)
	}
	return bytes
}

// A reader digests one JSON value and collects the hidden characters in its strings.
type reader struct {
	rawjson.Scanner
	hidden []rune
}

type digest = [sha256.Size]byte

// digest passes over a value. That of an object is made of those of its members,
// in the order of these: no text is copied, however deep it nests.
func (r *reader) digest() (sum digest) {
	r.SkipSpace()
	h := sha256.New()
	switch r.Text[r.Offset] {
	case '{':
		var pairs [][2]digest
		for name := range r.Object {
			pairs = append(pairs, [2]digest{r.str(name), r.digest()})
		}
		slices.SortStableFunc(pairs, func(a, b [2]digest) int { return slices.Compare(a[0][:], b[0][:]) })
		writePart(h, "object")
		for _, p := range pairs {
			h.Write(p[0][:])
			h.Write(p[1][:])
		}
	case '[':
		writePart(h, "list")
		for range r.List {
			item := r.digest()
			h.Write(item[:])
		}
	default:
		value := r.Value()
		if value[0] == '"' {
			return r.str(value)
		}
		writePart(h, "literal") // numbers as they are written
		h.Write(value)
	}
	h.Sum(sum[:0])
	return sum
}

// str digests a string, given in its quotes.
func (r *reader) str(quoted []byte) (sum digest) {
	kind, txt := "string", string(quoted[1:len(quoted)-1])
	if strings.ContainsFunc(txt, func(c rune) bool { return c == '\\' || c > '~' }) {
		if json.Unmarshal(quoted, &txt) != nil {
			txt = ""
		}
		for _, c := range text.Hidden(txt) {
			if len(r.hidden) < maxHidden && !slices.Contains(r.hidden, c) {
				r.hidden = append(r.hidden, c)
			}
		}
		if strings.ContainsRune(txt, '\uFFFD') { // which is what all that is not Unicode becomes
			kind, txt = "written", string(quoted)
		}
	}
	h := sha256.New()
	writePart(h, kind)
	h.Write([]byte(txt))
	h.Sum(sum[:0])
	return sum
}

// writePart writes a text with its length, so that no two rows of parts are alike.
func writePart(h hash.Hash, part string) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(part)))
	h.Write(length[:])
	h.Write([]byte(part))
}
