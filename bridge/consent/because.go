package consent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// MaxBecause bounds what the user says with a denial, in characters.
const MaxBecause = 500

// maxRawBecause bounds it before it is cleaned, in bytes. A character has up to four.
const maxRawBecause = 8 * MaxBecause

// Because returns what the user says with a denial as it is passed on: one line, without
// escape sequences and without characters that are not seen. Text that is too long is an error:
// what would be cut off may be what matters.
func Because(said string) (string, error) {
	if len(said) > maxRawBecause {
		return "", fmt.Errorf("the reason has %d bytes; it may have %d characters", len(said), MaxBecause)
	}
	because := text.Clean(said)
	// Clean leaves joiners that join nothing. Without one of them, another may join nothing.
	for hidden := text.Hidden(because); len(hidden) > 0; hidden = text.Hidden(because) {
		because = strings.Map(func(r rune) rune {
			if slices.Contains(hidden, r) {
				return -1
			}
			return r
		}, because)
	}
	because = strings.Join(strings.Fields(because), " ")
	if n := utf8.RuneCountInString(because); n > MaxBecause {
		return "", fmt.Errorf("the reason has %d characters, of at most %d", n, MaxBecause)
	}
	return because, nil
}

// A saidError is ErrDenied or ErrStopped with what the user says.
type saidError struct {
	error
	said string
}

// Error implements error.
func (e *saidError) Error() string { return e.said }

// Unwrap implements errors.Unwrap.
func (e *saidError) Unwrap() error { return e.error }

// denial is ErrDenied, with what the user says.
func (a Answer) denial() error {
	if a.Because == "" {
		return ErrDenied
	}
	return &saidError{ErrDenied, ErrDenied.Error() + ", who says: " + a.Because}
}

// stop is ErrStopped, with what the user says.
func (a Answer) stop() error {
	if a.Because == "" {
		return ErrStopped
	}
	return &saidError{ErrStopped, ErrStopped.Error() + ": " + a.Because}
}

// HasWords reports whether an error has words of the user. On record they stand with their
// question, as a value that is kept or not.
func HasWords(err error) bool {
	_, said := errors.AsType[*saidError](err)
	return said
}

// WithoutWords returns ErrDenied or ErrStopped in place of an error that has words of the user,
// and any other error as it is.
func WithoutWords(err error) error {
	if e, said := errors.AsType[*saidError](err); said {
		return e.error
	}
	return err
}
