package catalog

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

const (
	recordSuffix  = ".tools"
	maxRecordSize = 6 << 20 // of more tools nothing is kept: nothing cancels the reading

	// unusedFor is how long the record of a server that no config file has any
	// more is kept: it may be one of another project.
	unusedFor    = 30 * 24 * time.Hour
	touchedAfter = 24 * time.Hour // a read renews the time of use, not every one
	brokenAfter  = time.Hour      // a temporary file older than this is left over
	maxRecords   = 5000           // in the folder
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
	f, err := os.Open(s.path(key))
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
	if now := time.Now(); now.Sub(st.ModTime()) > touchedAfter {
		_ = os.Chtimes(s.path(key), now, now) // another's file is as good without
	}
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
	dir, err := os.Open(s.Dir)
	if err != nil {
		return // it is not there yet
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(10 * maxRecords)
	records := 0
	for _, e := range entries {
		key, isRecord := strings.CutSuffix(e.Name(), recordSuffix)
		isTemp := state.IsTemp(e.Name())
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !isRecord && !isTemp || keep[key] {
			continue
		}
		age := time.Since(info.ModTime())
		if isRecord {
			records++
		}
		if isTemp && age > brokenAfter || isRecord && (age > unusedFor || records > maxRecords) {
			if err := os.Remove(filepath.Join(s.Dir, e.Name())); err == nil {
				s.Log.Debug("forgetting a server's tools", "file", e.Name(), "unused", age.Round(time.Hour))
			}
		}
	}
}
