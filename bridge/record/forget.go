package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Forget removes the values of a run from all files under a folder of records, and returns how many
// there were. The entries stay, with digests that say nothing any more, since the salt is gone. The
// lines are overwritten with spaces where they stand, so a process that appends to the file is not
// disturbed, and no copy is left in a file that was replaced. A run that goes on writes more of them.
// To be called again after an error, it removes what is left.
func Forget(dir, run string) (removed int, err error) {
	days, err := folder(dir).days()
	for _, day := range days {
		names, filesErr := folder(dir).files(day)
		err = errors.Join(err, filesErr)
		for _, name := range names {
			n, forgetErr := forgetIn(filepath.Join(dir, day, ValuesName(name)), run)
			removed, err = removed+n, errors.Join(err, forgetErr)
		}
	}
	if removed > 0 {
		now := time.Now().UTC()
		err = errors.Join(err, folder(dir).note(now.Format(Day), now, Forgotten{Forgot: idOf(run, MaxID), Values: removed}))
	}
	return removed, err
}

// forgetIn overwrites the lines of a run in one file.
func forgetIn(path, run string) (removed int, err error) {
	f, err := OpenFile(path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	start := []byte(`{"run":"` + idOf(run, MaxID) + `",`)
	lines := NewLines(f)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return removed, err
		}
		if !bytes.HasPrefix(line.Text, start) || line.Long {
			continue
		}
		if _, err := f.WriteAt(bytes.Repeat([]byte{' '}, len(line.Text)), line.At); err != nil {
			return removed, err
		}
		removed++
	}
	if removed == 0 {
		return 0, nil
	}
	return removed, f.Sync()
}
