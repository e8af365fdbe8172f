package cachedir

import (
	"sync"

	"github.com/toolcell/toolcell/internal/state"
)

// maxRecent bounds the files whose content is kept in memory.
const maxRecent = 16

// Recent keeps the parsed contents of the last few files of a cache in memory. It reads a
// file again only if it was replaced, as by WriteFile, or its time was changed. Results are
// shared: callers must not change them.
type Recent[T any] struct {
	parse func(content []byte) (T, error)

	mu   sync.Mutex
	kept map[string]recentFile[T]
}

type recentFile[T any] struct {
	stamp state.Stamp
	value T
}

// NewRecent returns a Recent for files that parse reads.
func NewRecent[T any](parse func(content []byte) (T, error)) *Recent[T] {
	return &Recent[T]{parse: parse, kept: map[string]recentFile[T]{}}
}

// Read returns the content of a file. Errors are not kept.
func (r *Recent[T]) Read(file string) (T, error) {
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
	if len(r.kept) >= maxRecent {
		clear(r.kept)
	}
	r.kept[file] = recentFile[T]{stamp, value}
	return value, nil
}
