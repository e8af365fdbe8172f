package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// etcFiles are the files that libc uses to resolve names. Images lack them or have empty
// ones, since every container runtime brings its own. A sandbox has no name server, but
// unless a file says so, musl asks one and waits five seconds for each name.
var etcFiles = map[string]string{
	"etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
	"etc/resolv.conf": "options timeout:0 attempts:1\n",
}

// addEtcFiles writes those that are missing or empty in an image, unless its /etc is not a
// directory.
func addEtcFiles(root *os.Root) error {
	if err := rootdir.MakeDirs(root, "etc"); err != nil {
		return fmt.Errorf("making /etc: %w", err)
	}
	if info, err := root.Lstat("etc"); err != nil || !info.IsDir() {
		return err
	}
	for name, content := range etcFiles {
		info, err := root.Lstat(name)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > 0) {
			continue
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = rootdir.MakeInside(root, path.Dir(name), func() error { return rootdir.ReplaceFile(root, name, []byte(content)) })
		}
		if err != nil {
			return fmt.Errorf("writing /%s: %w", name, err)
		}
	}
	return nil
}
