package catalog

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

const (
	recordSuffix  = ".tools"
	maxRecordSize = 6 << 20 // of more tools nothing is kept: nothing cancels the reading

	// unusedFor is how long the record of a server that no config file has any
	// more is kept: it may be one of another project.
	unusedFor  = 30 * 24 * time.Hour
	maxRecords = 5000 // in the folder
)

// A Store is the folder that keeps a record of every server, so that what is
// known of its tools outlives the process. Several processes may use it at the
// same time: files are replaced as a whole and the last one wins. It is a cache:
// errors are logged, not returned.
type Store struct {
	Dir string // nothing is kept if it is empty
	Log *slog.Logger
}

func (s Store) path(key string) string { return filepath.Join(s.Dir, key+recordSuffix) }

// read returns up to limit bytes of a record, and the size of the whole. It
// fails with fs.ErrNotExist if there is none.
func (s Store) read(key string, limit int64) (data []byte, size int64, err error) {
	if s.Dir == "" {
		return nil, 0, fs.ErrNotExist
	}
	f, err := os.OpenFile(s.path(key), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !st.Mode().IsRegular() || st.Size() > maxRecordSize:
		return nil, 0, errDamaged
	}
	state.Touch(s.path(key))
	data = make([]byte, min(limit, st.Size()))
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, 0, errDamaged
	}
	return data, st.Size(), nil
}

// write replaces a record, as a whole.
func (s Store) write(key string, data []byte) error {
	if s.Dir == "" {
		return nil
	}
	if len(data) > maxRecordSize {
		return fmt.Errorf("it has more than %d MiB", maxRecordSize>>20)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return state.Replace(s.path(key), data, state.Options{Unsynced: true})
}

// Prune removes the records that were not used for long, except those of keep,
// and files that a killed process left unfinished.
func (s Store) Prune(keep map[string]bool) {
	if s.Dir == "" {
		return
	}
	folder := state.Folder{Dir: s.Dir, Suffix: recordSuffix, Unused: unusedFor, Max: maxRecords}
	for _, file := range folder.Prune(keep) {
		s.Log.Debug("forgetting a server's tools", "file", file)
	}
}
