package images

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A jsonReader reads the members of a JSON text that are in use, and passes over the
// rest without keeping it. Images say what they like: decoded into Go values, 16 MiB of
// "[{},{},…]" took gigabytes.
type jsonReader struct {
	tokens *jsontext.Decoder
	path   []string // the names of the members that are open
}

func newJSONReader(r io.Reader) *jsonReader {
	// To find a name that is there twice, all would be kept. The last one counts, as in
	// encoding/json, with which other tools read the same files.
	return &jsonReader{tokens: jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// enter goes into an object or a list. It returns false for null, which it passes over.
func (r *jsonReader) enter(kind jsontext.Kind) (bool, error) {
	got := r.tokens.PeekKind()
	if got != kind && got != 'n' && got != 0 {
		return false, r.wrongKind(kind, got)
	}
	_, err := r.tokens.ReadToken()
	return got == kind, err
}

// object calls member with each name, for it to read the value or to skip it.
func (r *jsonReader) object(member func(name string) error) error {
	if there, err := r.enter('{'); !there {
		return err
	}
	for r.tokens.PeekKind() != '}' {
		name, err := r.tokens.ReadToken()
		if err != nil {
			return err
		}
		r.path = append(r.path, name.String())
		if err := member(r.path[len(r.path)-1]); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	_, err := r.tokens.ReadToken()
	return err
}

// list calls element for each of at most so many, for it to read one.
func (r *jsonReader) list(most int, element func() error) error {
	if there, err := r.enter('['); !there {
		return err
	}
	for n := 0; r.tokens.PeekKind() != ']'; n++ {
		if n == most {
			return fmt.Errorf("%s has more than the limit of %d entries", r.where(), most)
		}
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.tokens.ReadToken()
	return err
}

// texts reads a list of strings.
func (r *jsonReader) texts(most int) (all []string, err error) {
	err = r.list(most, func() error {
		s, err := r.text()
		all = append(all, s)
		return err
	})
	return all, err
}

func (r *jsonReader) text() (string, error) {
	got := r.tokens.PeekKind()
	if got != '"' && got != 'n' && got != 0 {
		return "", r.wrongKind('"', got)
	}
	t, err := r.tokens.ReadToken()
	if err != nil || got == 'n' {
		return "", err
	}
	return t.String(), nil
}

func (r *jsonReader) integer() (int64, error) {
	got := r.tokens.PeekKind()
	if got != '0' && got != 'n' && got != 0 {
		return 0, r.wrongKind('0', got)
	}
	t, err := r.tokens.ReadToken()
	if err != nil || got == 'n' {
		return 0, err
	}
	n, err := strconv.ParseInt(t.String(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be a whole number", r.where())
	}
	return n, nil
}

func (r *jsonReader) digest() (h v1.Hash, err error) {
	s, err := r.text()
	if err != nil || s == "" {
		return h, err
	}
	if h, err = v1.NewHash(s); err != nil {
		return h, fmt.Errorf("%s is not a digest", r.where())
	}
	return h, nil
}

func (r *jsonReader) skip() error { return r.tokens.SkipValue() }

var errNotJSON = errors.New("it is not valid JSON")

// end reads on to the end, where nothing may follow.
func (r *jsonReader) end() error {
	_, err := r.tokens.ReadToken()
	switch {
	case err == nil:
		return errNotJSON
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

func (r *jsonReader) where() string { return where(strings.Join(r.path, ".")) }

// tokenKinds has the words for kinds of values.
var tokenKinds = map[jsontext.Kind]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "true or false", 'f': "true or false"}

func (r *jsonReader) wrongKind(want, got jsontext.Kind) error {
	return fmt.Errorf("%s must be %s, not %s", r.where(), tokenKinds[want], tokenKinds[got])
}
