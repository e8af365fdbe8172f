package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/oci/spec"
)

// maxTop is how many names Landlock gets rules for. Images have some twenty.
const maxTop = 40

// TopNames returns the names at the top of a root directory that contain files, which is
// all that code needs to read (spec.Readable). A symbolic link leads to one of the others,
// and an empty directory may be a mount point.
//
// If there are too many, or one cannot be passed to pid 1 (pid1.c, allow_list), it returns
// ".", all of the root.
func TopNames(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("reading the root directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if spec.IsOwnTop(name) || !e.Type().IsRegular() && (!e.IsDir() || isEmpty(filepath.Join(root, name))) {
			continue
		}
		if strings.Contains(name, ":") || len(names) == maxTop {
			return []string{"."}, nil
		}
		names = append(names, name)
	}
	return names, nil
}

// isEmpty reports whether a directory is known to be empty.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
