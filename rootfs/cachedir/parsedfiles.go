package cachedir

import (
	"sync"

	"github.com/toolcell/toolcell/internal/state"
)

// maxParsed bounds the files whose content is kept in memory.
const maxParsed = 16

// ParsedFiles keep the parsed contents of the last few files of a cache in memory. They read a
// file again only if it was replaced, as by WriteFile, or its time was changed. Results are
// shared: callers must not change them.
type ParsedFiles[T any] struct {
	parse func(content []byte) (T, error)

	mu   sync.Mutex
	kept map[string]parsedFile[T]
}

type parsedFile[T any] struct {
	stamp state.Stamp
	value T
}

// NewParsedFiles returns ParsedFiles for files that parse reads.
func NewParsedFiles[T any](parse func(content []byte) (T, error)) *ParsedFiles[T] {
	return &ParsedFiles[T]{parse: parse, kept: map[string]parsedFile[T]{}}
}

// Read returns the content of a file. Errors are not kept.
func (r *ParsedFiles[T]) Read(file string) (T, error) {
	stamp, err := state.StampOf(file)
	if err != nil {
		return *new(T), err
	}
	r.mu.Lock()
	known, found := r.kept[file]
	r.mu.Unlock()
	if found && known.stamp == stamp {
		return known.value, nil
	}
	content, stamp, err := readSmall(file)
	if err != nil {
		return *new(T), err
	}
	value, err := r.parse(content)
	if err != nil {
		return *new(T), err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) >= maxParsed {
		clear(r.kept)
	}
	r.kept[file] = parsedFile[T]{stamp, value}
	return value, nil
}
