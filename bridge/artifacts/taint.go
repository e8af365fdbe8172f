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

// SetPrivate notes with the files what was read from private servers before they were
// written; Store.Private gives it back.
func (c *Collector) SetPrivate(reads []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private = reads
}

// writePrivate writes the note into the folder that is about to be published. mu is
// held.
func (c *Collector) writePrivate() error {
	if len(c.private) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(c.dir, privateFile), []byte(strings.Join(c.private, "\n")), 0o600)
}

// Private returns what had been read from private servers before a file was written.
// A note that cannot be read counts as one.
func (s *Store) Private(uri string) []string {
	f, err := s.Open(uri)
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
