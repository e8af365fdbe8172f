package rootfs

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxRecord bounds the small files of the store, which other programs of the
// user could have damaged.
const maxRecord = 32 << 20

func readJSON(file string, v any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

// writeJSON replaces a file as writeFile does.
func writeJSON(file string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(file, content)
}

// writeFile replaces a file as a whole, and its content is on the disk before it
// has its name. The caller has a lock that covers the file: the temporary name is
// always the same, so that what a killed process left there is overwritten and
// does not stay for ever.
func writeFile(file string, content []byte) (err error) {
	f, err := os.OpenFile(newName(file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if rm := os.Remove(f.Name()); !errors.Is(rm, fs.ErrNotExist) {
				err = errors.Join(err, rm)
			}
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

const newPrefix = ".new-"

// newName is the name of a file, or of a folder of bytecode, while it is written.
func newName(file string) string {
	return filepath.Join(filepath.Dir(file), newPrefix+filepath.Base(file))
}
