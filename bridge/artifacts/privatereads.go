package artifacts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
)

// privateFile is a file beside a run's files, with what was read from private servers
// before they were written, one on a line. No file of code's has such a name.
const privateFile = ".private"

// maxPrivate bounds that file, in bytes.
const maxPrivate = 64 << 10

func (f *runFiles) setPrivate(reads []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.private = reads
}

// writePrivate writes the note into the folder that is about to be published. f.mu is
// held.
func (f *runFiles) writePrivate() error {
	if len(f.private) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(f.dir, privateFile), []byte(strings.Join(f.private, "\n")), 0o600)
}

// Private returns what had been read from private servers before a file was written.
// A note that cannot be read counts as one.
func (s *Store) Private(uri string) []string {
	f, err := s.open(uri)
	if err != nil {
		return nil
	}
	defer f.Close()
	body, err := state.ReadRegular(filepath.Join(filepath.Dir(f.Name()), privateFile), maxPrivate)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []string{"a server"}
	}
	return strings.Split(string(body), "\n")
}
