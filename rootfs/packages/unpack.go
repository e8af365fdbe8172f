package packages

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// unpackWheel unpacks the importable parts of a wheel (PEP 427; packaging.python.org,
// "Binary distribution format"): its root, purelib and platlib. Scripts, headers and other
// data are left out. Every file must match RECORD.
func unpackWheel(ctx context.Context, file, dir string, p lockedPackage, b *budget) (*wheelRecord, error) {
	entries, closeZip, err := openWheel(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeZip() }() // it was only read
	info, err := distInfo(ctx, entries, p)
	if err == nil {
		err = checkPlaces(ctx, entries, info)
	}
	if err != nil {
		return nil, err
	}
	hashes, err := readRecord(ctx, entries, info)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.Chmod(".", 0o755); err != nil {
		return nil, err
	}
	rec := &wheelRecord{Format: wheelFormat}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		target, ok := installedAt(e.Name, info)
		if !ok {
			continue
		}
		n, err := writeEntry(ctx, root, e, target, hashes, b)
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", rootdir.Quote(e.Name), err)
		}
		rec.Bytes += n
		rec.Files++
	}
	return rec, checkIdentity(root, p)
}

// openWheel returns the files of a wheel, whose names are unambiguous.
func openWheel(ctx context.Context, file string) (_ []*zip.File, closeFile func() error, err error) {
	z, size, closeFile, err := openZip(ctx, file)
	if err != nil {
		return nil, nil, fmt.Errorf("it is no wheel: %w", err)
	}
	entries, err := checkEntries(ctx, z.File, size)
	if err != nil {
		return nil, nil, errors.Join(err, closeFile())
	}
	return entries, closeFile, nil
}

// maxDirectory bounds the directory at the end of a wheel, in bytes. An entry has at least
// 46 bytes and takes several hundred in memory, so there are fewer than maxFiles. Real wheels
// have up to 4 MiB.
const maxDirectory = 8 << 20

// maxDepth bounds the nesting of a wheel's folders.
const maxDepth = 100

// openZip opens a zip file whose directory is not too large.
func openZip(ctx context.Context, file string) (_ *zip.Reader, size int64, closeFile func() error, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, nil, err
	}
	info, err := f.Stat()
	var z *zip.Reader
	if err == nil {
		bounded := &boundedReaderAt{f, ctx, maxDirectory}
		z, err = zip.NewReader(bounded, info.Size())
		bounded.ctx, bounded.left = context.Background(), math.MaxInt64
	}
	if err != nil {
		return nil, 0, nil, errors.Join(err, f.Close())
	}
	return z, info.Size(), f.Close, nil
}

// A boundedReaderAt fails once more than left bytes are read or its context has ended.
type boundedReaderAt struct {
	io.ReaderAt
	ctx  context.Context
	left int64
}

func (b *boundedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("its directory has more than %d bytes", maxDirectory)
	}
	return b.ReaderAt.ReadAt(p, at)
}

// checkEntries returns the files of a wheel of size bytes. An ambiguous name is an error;
// it is not corrected.
func checkEntries(ctx context.Context, all []*zip.File, size int64) ([]*zip.File, error) {
	files := make([]*zip.File, 0, len(all))
	left := uint64(size)
	for _, e := range all {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name, isDir := strings.CutSuffix(e.Name, "/")
		mode := e.Mode()
		switch {
		case !rootdir.Unambiguous(name, maxDepth):
			return nil, fmt.Errorf("%s is not a name that a wheel may have", rootdir.Quote(e.Name))
		case e.Flags&1 != 0:
			return nil, fmt.Errorf("%s is encrypted", rootdir.Quote(e.Name))
		case e.CompressedSize64 > left:
			return nil, errors.New("its files take more than there is, so they overlap")
		case isDir || mode.IsDir():
			continue
		case !mode.IsRegular():
			return nil, fmt.Errorf("%s is no regular file", rootdir.Quote(e.Name))
		}
		left -= e.CompressedSize64
		files = append(files, e)
	}
	return files, nil
}

// findEntry returns the file with a name, or nil. The library's own search would index
// every folder of every name.
func findEntry(files []*zip.File, name string) *zip.File {
	at := slices.IndexFunc(files, func(e *zip.File) bool { return e.Name == name })
	if at < 0 {
		return nil
	}
	return files[at]
}

// installedAt returns where a file of a wheel is installed; ok is false if it is left out.
// Python would run the lines of a .pth file at the top (site, "import lines"), and
// importlib.metadata would take an .egg-info there for another package. HiddenName is
// toolcell's own file.
func installedAt(name, info string) (string, bool) {
	data := strings.TrimSuffix(info, ".dist-info") + ".data/"
	if rest, inData := strings.CutPrefix(name, data); inData {
		scheme, inside, _ := strings.Cut(rest, "/")
		if inside == "" || scheme != "purelib" && scheme != "platlib" {
			return "", false
		}
		name = inside
	}
	top, _, _ := strings.Cut(name, "/")
	switch {
	case hasSuffixFold(top, ".egg-info"):
		return "", false
	case path.Dir(name) == "." && strings.HasSuffix(strings.ToLower(name), ".pth"), path.Base(path.Dir(name)) == "__pycache__", name == HiddenName:
		return "", false
	}
	return name, true
}

// writeEntry unpacks one file.
func writeEntry(ctx context.Context, root *os.Root, e *zip.File, target string, hashes map[string]fileHash, b *budget) (int64, error) {
	want, listed := hashes[e.Name]
	if !listed {
		return 0, errors.New("RECORD does not have it")
	}
	// What the header says is spent before a byte is written, and no more is read.
	if e.UncompressedSize64 > 1<<40 {
		return 0, errors.New("it is too large")
	}
	size := int64(e.UncompressedSize64)
	if err := b.spend(size, 1); err != nil {
		return 0, err
	}
	if err := rootdir.MakeDirs(root, path.Dir(target)); err != nil {
		return 0, err
	}
	mode := fs.FileMode(0o644)
	if e.Mode()&0o111 != 0 {
		mode = 0o755 // programs that a package starts itself
	}
	in, err := e.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	sum := want.new()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(&cachedir.ContextReader{Context: ctx, Inner: in}, size+1))
	if err == nil && n > size {
		err = errors.New("it is longer than its header says")
	}
	if err = errors.Join(err, out.Chmod(mode), out.Close()); err != nil {
		return n, err
	}
	return n, want.compare(sum)
}
