package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// etcFiles are the files in which libc looks up names. Images have none or empty
// ones, since every container runtime brings its own. A sandbox has no name server,
// but unless a file rules that out, musl asks one all the same, and waits five
// seconds for each name.
var etcFiles = map[string]string{
	"etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
	"etc/resolv.conf": "options timeout:0 attempts:1\n",
}

// addEtcFiles writes those that an image lacks or has empty. An image whose /etc is
// not a directory gets none.
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
