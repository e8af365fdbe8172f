package record

import (
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/bridge/record/secrets"
)

// Bounds on what an entry holds.
const (
	maxName  = 256
	maxWords = 1 << 10
	maxList  = 100
)

// A Cut names a field of which only the beginning is there.
type Cut struct {
	Field  string `json:"field"`
	Size   int    `json:"size,omitzero"`   // bytes of the whole string
	SHA256 string `json:"sha256,omitzero"` // of the whole string, salted as a Text is
	Count  int    `json:"count,omitzero"`  // members of the whole list
}

// more are the last members of an entry: what was cut, and which rules have blacked out something
// in which field that is no Text.
type more struct {
	Cut    []Cut    `json:"cut,omitzero"`
	Hidden []string `json:"hidden,omitzero"`
}

// A draft is an entry that is made ready to be written. What takes time is done here, before any
// lock is taken.
type draft struct {
	run    *Run
	keeps  Keep
	o      *Options
	most   int // bytes that are kept of a Text
	hider  *secrets.Hider
	more   more
	values [][]byte // lines of the file of values, without the run and seq
	err    error
}

// encode makes an entry ready and returns its members, as a JSON object.
func encode(e Entry, d *draft) ([]byte, error) {
	body, err := json.Marshal(e.ready(d))
	if err = errors.Join(err, d.err); err != nil || d.more.Cut == nil && d.more.Hidden == nil {
		return body, err
	}
	end, err := json.Marshal(d.more)
	return joined(body, end), err
}

// joined makes one JSON object of two, of which the second is not empty.
func joined(a, b []byte) []byte {
	a = a[:len(a)-1]
	if len(a) > 1 {
		a = append(a, ',')
	}
	return append(a, b[1:]...)
}

// keep sets what is kept of this entry, if it says so itself.
func (d *draft) keep(k Keep) {
	if k != "" {
		d.keeps = k
	}
}

// name bounds a short string.
func (d *draft) name(field string, s *string) { d.bound(field, s, maxName, d.hider.Name) }

// foreign bounds a short string that the client, code or a server chose: the name of a file, a host.
func (d *draft) foreign(field string, s *string) { d.bound(field, s, maxName, d.hider.Text) }

// words bounds a sentence, of which any secret may be part.
func (d *draft) words(field string, s *string) { d.bound(field, s, maxWords, d.hider.Text) }

func (d *draft) bound(field string, s *string, most int, hide func(string) (string, []string)) {
	if *s == "" {
		return
	}
	whole := *s
	text := strings.Map(printable, whole[:min(len(whole), most+margin)])
	text, rules := hide(text)
	for _, rule := range rules {
		d.more.Hidden = append(d.more.Hidden, field+": "+rule)
	}
	if len(whole) > most {
		d.more.Cut = append(d.more.Cut, Cut{Field: field, Size: len(whole), SHA256: d.run.digest([]byte(whole))})
	}
	*s = cutTo(text, most)
}

// printable replaces what is no character, and control characters, of which JSON makes six bytes each.
func printable(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return ' '
	case unicode.IsControl(c):
		return utf8.RuneError
	}
	return c
}

// bound cuts a list, and calls each for its members. The caller's list stays as it is.
func bound[T any](d *draft, field string, list *[]T, each func(*T)) {
	if len(*list) > maxList {
		d.more.Cut = append(d.more.Cut, Cut{Field: field, Count: len(*list)})
	}
	if len(*list) == 0 {
		return
	}
	*list = slices.Clone((*list)[:min(len(*list), maxList)])
	for i := range *list {
		each(&(*list)[i])
	}
}

func (d *draft) foreigns(field string, list *[]string) {
	bound(d, field, list, func(s *string) { d.foreign(field, s) })
}

func (d *draft) names(field string, list *[]string) {
	bound(d, field, list, func(s *string) { d.name(field, s) })
}

// text makes the digest of a Text, and a value of what is kept.
func (d *draft) text(field string, t *Text, from source) {
	if t.Size == 0 || d.run == nil {
		*t = Text{}
		return
	}
	whole := *t
	*t = Text{Size: whole.Size, SHA256: whole.SHA256}
	if !whole.streamed {
		t.SHA256 = d.run.digest(whole.head)
	}
	if !d.keeps.keeps(from) {
		return
	}
	e := excerpt{hider: d.hider, most: d.most}
	v := Value{Field: field, Salt: d.run.saltText}
	switch {
	case !whole.streamed:
		v.Value = e.head(whole.head, e.most)
	case whole.tail != nil:
		v.Value, v.Tail = e.head(whole.head, e.most/2), e.tail(whole.tail, e.most/2)
		e.cut += whole.Size - int64(len(whole.head)+len(whole.tail))
	default:
		v.Value, v.Tail = e.ends(whole.head)
	}
	t.Kept, t.Cut, t.Hidden = len(v.Value)+len(v.Tail), e.cut, e.rules
	if t.Cut > 0 || t.Hidden != nil {
		t.KeptSHA256 = d.run.digest([]byte(v.Value), []byte(v.Tail))
	}
	line, err := json.Marshal(v)
	d.err = errors.Join(d.err, err)
	d.values = append(d.values, line)
}
