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
	"unicode/utf8"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// unpackWheel unpacks what code can import of a wheel (the binary distribution format
// of packaging.python.org, PEP 427): its root, purelib and platlib. Scripts, headers and
// data for other places stay out. Every file is as RECORD says.
func unpackWheel(ctx context.Context, file, dir, project string, b *budget) (*wheelRecord, error) {
	z, closeZip, err := openZip(file)
	if err != nil {
		return nil, fmt.Errorf("it is no wheel: %w", err)
	}
	defer func() { _ = closeZip() }() // it was only read
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
	entries, err := checkEntries(z.File)
	if err != nil {
		return nil, err
	}
	info, err := distInfo(entries, project)
	if err != nil {
		return nil, err
	}
	hashes, err := readRecord(z, info)
	if err != nil {
		return nil, err
	}
	rec := &wheelRecord{Format: wheelFormat}
	places := &places{seen: map[string]string{}}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		target, ok := installedAt(e.Name, info)
		if !ok {
			continue
		}
		if err := places.take(target); err != nil {
			return nil, err
		}
		n, err := writeEntry(root, e, target, hashes, b)
		if err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", rootdir.Quote(e.Name), err)
		}
		rec.Bytes += n
		rec.Files++
	}
	return rec, nil
}

// maxDirectory bounds the directory at the end of a wheel, in bytes. Each entry of 50
// bytes or more takes some hundreds in memory.
const maxDirectory = 16 << 20

// openZip opens a zip file whose directory is not too large.
func openZip(file string) (_ *zip.Reader, closeFile func() error, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	var z *zip.Reader
	if err == nil {
		bounded := &boundedReaderAt{f, maxDirectory}
		z, err = zip.NewReader(bounded, info.Size())
		bounded.left = math.MaxInt64
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return z, f.Close, nil
}

// A boundedReaderAt fails when more is read than is left.
type boundedReaderAt struct {
	io.ReaderAt
	left int64
}

func (b *boundedReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, fmt.Errorf("its directory has more than %d bytes", maxDirectory)
	}
	return b.ReaderAt.ReadAt(p, at)
}

// checkEntries returns the files of a wheel. A name that could mean another place is an
// error, not something to put right.
func checkEntries(all []*zip.File) ([]*zip.File, error) {
	if len(all) > maxFiles {
		return nil, fmt.Errorf("it has %d files, more than the limit of %d", len(all), maxFiles)
	}
	var files []*zip.File
	for _, e := range all {
		name, isDir := strings.CutSuffix(e.Name, "/")
		mode := e.Mode()
		switch {
		case !validName(name):
			return nil, fmt.Errorf("%s is not a name that a wheel may have", rootdir.Quote(e.Name))
		case e.Flags&1 != 0:
			return nil, fmt.Errorf("%s is encrypted", rootdir.Quote(e.Name))
		case isDir || mode.IsDir():
			continue
		case !mode.IsRegular():
			return nil, fmt.Errorf("%s is no regular file", rootdir.Quote(e.Name))
		}
		files = append(files, e)
	}
	return files, nil
}

// validName reports whether a name means one place, on every system.
func validName(name string) bool {
	if !fs.ValidPath(name) || name == "." || len(name) > rootdir.MaxPath || strings.ContainsAny(name, "\\:") || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > rootdir.MaxName })
}

// distInfo returns the wheel's one NAME-VERSION.dist-info, which is of the project.
func distInfo(files []*zip.File, project string) (string, error) {
	var found []string
	for _, e := range files {
		top, _, ok := strings.Cut(e.Name, "/")
		if ok && strings.HasSuffix(top, ".dist-info") && !slices.Contains(found, top) {
			found = append(found, top)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("it has %d folders .dist-info, not one", len(found))
	}
	if name, _, ok := strings.Cut(found[0], "-"); !ok || !sameName(name, project) {
		return "", fmt.Errorf("it is a wheel of %s, not of %s", rootdir.Quote(found[0]), project)
	}
	return found[0], nil
}

// installedAt returns where a file of a wheel goes, and false if it goes nowhere. A
// .pth file at the top would have Python run its lines (site, "import lines"); it stays
// out, so that nothing depends on whether it would. HiddenName is a file of ours.
func installedAt(name, info string) (string, bool) {
	data := strings.TrimSuffix(info, ".dist-info") + ".data/"
	if rest, inData := strings.CutPrefix(name, data); inData {
		scheme, inside, _ := strings.Cut(rest, "/")
		if inside == "" || scheme != "purelib" && scheme != "platlib" {
			return "", false
		}
		name = inside
	}
	switch {
	case path.Dir(name) == "." && strings.HasSuffix(strings.ToLower(name), ".pth"), path.Base(path.Dir(name)) == "__pycache__", name == HiddenName:
		return "", false
	}
	return name, true
}

// places are those that files of a wheel have taken. Two that differ in the case of
// letters alone are one to other programs, and a file cannot be a folder too.
type places struct{ seen map[string]string }

func (p *places) take(name string) error {
	if other, taken := p.seen[strings.ToLower(name)]; taken {
		return fmt.Errorf("%s is there twice, also as %s", rootdir.Quote(name), rootdir.Quote(other))
	}
	if _, taken := p.seen[strings.ToLower(name)+"/"]; taken {
		return fmt.Errorf("%s is there as a file and as a folder", rootdir.Quote(name))
	}
	p.seen[strings.ToLower(name)] = name
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		// The end keeps folders apart from files.
		key := strings.ToLower(dir) + "/"
		if other, taken := p.seen[key]; taken {
			if other != dir {
				return fmt.Errorf("the folder %s is there also as %s", rootdir.Quote(dir), rootdir.Quote(other))
			}
			break // and those above it
		}
		if _, taken := p.seen[strings.ToLower(dir)]; taken {
			return fmt.Errorf("%s is there as a file and as a folder", rootdir.Quote(dir))
		}
		p.seen[key] = dir
	}
	return nil
}

// writeEntry unpacks one file.
func writeEntry(root *os.Root, e *zip.File, target string, hashes map[string]fileHash, b *budget) (int64, error) {
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
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, size+1))
	if err == nil && n > size {
		err = errors.New("it is longer than its header says")
	}
	if err = errors.Join(err, out.Chmod(mode), out.Close()); err != nil {
		return n, err
	}
	return n, want.compare(sum)
}
