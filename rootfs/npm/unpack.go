package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

const (
	maxFiles = 200_000 // files and folders of a layer
	maxDepth = 100     // parts of a name in a tarball
)

// A budget is what the packages of a layer may still use.
type budget struct {
	bytes, files, fetched atomic.Int64
	limit                 int64
}

func newBudget(bytes int64) *budget {
	b := &budget{limit: bytes}
	b.bytes.Store(bytes)
	b.fetched.Store(bytes)
	b.files.Store(maxFiles)
	return b
}

// spend counts an entry of a tarball, and its bytes before they are written.
func (b *budget) spend(bytes int64) error {
	if bytes < 0 || bytes > b.limit || b.bytes.Add(-bytes) < 0 {
		return tooLarge(b.limit)
	}
	if b.files.Add(-1) < 0 {
		return requestErrorf("the packages have more than %d files", maxFiles)
	}
	return nil
}

// fetch counts the bytes of a tarball.
func (b *budget) fetch(bytes int64) error {
	if b.fetched.Add(-bytes) < 0 {
		return requestErrorf("the packages have tarballs of more than %s", text.Size(b.limit))
	}
	return nil
}

func tooLarge(limit int64) error {
	return requestErrorf("the packages have more than %s unpacked", text.Size(limit))
}

// unpack unpacks the tarball of a package into its folder of a root, which exists. The
// folder that all names of a tarball begin with, most often "package", is left out.
func (t *Tree) unpack(ctx context.Context, root *os.Root, p Package, tarball io.Reader, b *budget) error {
	in, err := gzip.NewReader(&cachedir.ContextReader{Context: ctx, Inner: tarball})
	if err != nil {
		return fmt.Errorf("its tarball is not compressed with gzip: %w", err)
	}
	entries := tar.NewReader(&cachedir.ContextReader{Context: ctx, Inner: in})
	w := writer{tree: t, p: p, budget: b, dirs: rootdir.NewResolver(root)}
	defer w.dirs.Close()
	top := ""
	for {
		hdr, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading its tarball: %w", err)
		}
		if err := b.spend(hdr.Size); err != nil {
			return err
		}
		if hdr.Typeflag == tar.TypeXGlobalHeader { // git archive writes one
			continue
		}
		name, err := inside(hdr.Name, &top)
		if err == nil && name != "" {
			err = w.write(name, hdr, entries)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", rootdir.Quote(hdr.Name), err)
		}
	}
	return checkIdentity(root, p)
}

// inside returns the name of an entry without the top folder, which has to be the same for
// all; it is set by the first. The name is empty for that folder itself.
func inside(name string, top *string) (string, error) {
	// Packers write "./package/x", and some "package/./x", which is the same file.
	parts := slices.DeleteFunc(strings.Split(strings.TrimSuffix(name, "/"), "/"), func(part string) bool { return part == "." })
	if name = strings.Join(parts, "/"); name == "" {
		return "", nil
	}
	if !rootdir.Unambiguous(name, maxDepth) {
		return "", errors.New("a tarball may not have such a name")
	}
	first, rest, _ := strings.Cut(name, "/")
	if *top == "" {
		*top = first
	}
	if first != *top {
		return "", fmt.Errorf("it is not in the folder %s as the others are", rootdir.Quote(*top))
	}
	return rest, nil
}

// A writer writes the files and folders of a package.
type writer struct {
	tree *Tree
	p    Package
	*budget
	dirs *rootdir.Resolver // keeps folders open: a path of many is slow to go for each file
}

// write writes one of them.
func (w writer) write(name string, hdr *tar.Header, content io.Reader) error {
	target := path.Join(w.p.Path, name)
	if owner := w.tree.owner(target); owner != w.p.Path {
		return fmt.Errorf("it is in the folder of another package, %s", rootdir.Quote(owner))
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		_, err := w.makeDirs(target)
		return err
	case tar.TypeReg:
		dir, err := w.makeDirs(path.Dir(target))
		if err != nil {
			return err
		}
		return writeFile(dir, path.Base(target), hdr, content)
	case tar.TypeSymlink, tar.TypeLink:
		return errors.New("it is a link, which a package may not have")
	}
	return errors.New("it is neither a file nor a folder")
}

// makeDirs returns a folder. It makes it with its parents, and counts those that were not
// there.
func (w writer) makeDirs(name string) (*os.Root, error) {
	dir, _, err := w.dirs.FindOrMake(name)
	for range w.dirs.Made() {
		err = errors.Join(err, w.spend(0))
	}
	return dir, err
}

// writeFile writes a file. One that is there must have the same content: npm packs a file twice if
// package.json names it in two ways.
func writeFile(dir *os.Root, name string, hdr *tar.Header, content io.Reader) error {
	mode := fs.FileMode(0o644)
	if hdr.Mode&0o111 != 0 {
		mode = 0o755 // programs that a package starts itself
	}
	out, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) && hasContent(dir, name, content) {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(out, content)
	if err == nil && n != hdr.Size {
		err = errors.New("it does not have the size of its header")
	}
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// hasContent reports whether a file has this content.
func hasContent(dir *os.Root, name string, content io.Reader) bool {
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	here, there := sha256.New(), sha256.New()
	_, err = io.Copy(here, f)
	_, wrong := io.Copy(there, content)
	return err == nil && wrong == nil && bytes.Equal(here.Sum(nil), there.Sum(nil))
}

// owner returns the path of the innermost package that a path is in.
func (t *Tree) owner(name string) string {
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if t.has(dir) {
			return dir
		}
	}
	return ""
}
