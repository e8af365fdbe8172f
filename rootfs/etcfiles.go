package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// etcFiles are what libc looks into to turn a name into an address. Images
// leave them out or empty, since every container runtime brings its own. There
// is no server to ask, but without a word about it musl would ask one, and wait
// five seconds for each name.
var etcFiles = map[string]string{
	"etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
	"etc/resolv.conf": "options timeout:0 attempts:1\n",
}

// addEtcFiles writes those that an image has not, or has nothing in. An image
// whose /etc is no directory has to do without.
func addEtcFiles(root *os.Root) error {
	info, err := root.Lstat("etc")
	if errors.Is(err, fs.ErrNotExist) {
		if err = rootdir.MakeDir(root, "etc"); err == nil {
			info, err = root.Lstat("etc")
		}
	}
	if err != nil {
		return fmt.Errorf("making /etc: %w", err)
	}
	if !info.IsDir() {
		return nil
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
