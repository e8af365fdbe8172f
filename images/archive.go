package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxArchiveFiles = 20000 // an image of 1000 layers has some 3000
	maxArchiveLinks = 10    // links to links
	maxArchiveName  = 1024  // bytes; tar has names of a megabyte
)

// tarBlobs are the files of a tar archive, found by their offsets. The archive is read in
// place, so that nothing has to be cleaned up.
type tarBlobs struct {
	file  string
	plain *os.File // its decompressed content, if it is compressed
	parts map[string]part
	links map[string]string
}

type part struct{ offset, size int64 }

// openArchive lists a tar archive by jumping from header to header. It decompresses a
// compressed one first, to at most limit bytes.
func openArchive(ctx context.Context, file string, limit int64) (*tarBlobs, error) {
	f, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &tarBlobs{file: file, parts: map[string]part{}, links: map[string]string{}}
	head := make([]byte, len(xzMagic))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !isCompressed(head) {
		return b, b.list(ctx, &contextFile{contextReader{ctx: ctx, inner: f}, f})
	}
	if b.plain, err = decompressToFile(ctx, f, limit); err != nil {
		return nil, fmt.Errorf("decompressing archive: %w", err)
	}
	if err := b.list(ctx, &contextFile{contextReader{ctx: ctx, inner: b.plain}, b.plain}); err != nil {
		b.plain.Close()
		return nil, err
	}
	return b, nil
}

// decompressToFile returns an unlinked file, which disappears when it is closed or no
// longer referenced.
func decompressToFile(ctx context.Context, f *os.File, limit int64) (*os.File, error) {
	d, err := newDecompressor(f)
	if err != nil {
		return nil, err
	}
	defer d.release()
	plain, err := os.CreateTemp(largeTempDir(), "toolcell-")
	if err != nil {
		return nil, err
	}
	if err := fill(plain, &contextReader{ctx: ctx, inner: d}, limit); err != nil {
		plain.Close()
		return nil, err
	}
	return plain, nil
}

// fill unlinks a file and writes at most limit bytes into it.
func fill(plain *os.File, from io.Reader, limit int64) error {
	if err := os.Remove(plain.Name()); err != nil {
		return err
	}
	n, err := io.Copy(plain, io.LimitReader(from, limit+1))
	if err != nil {
		return err
	}
	if n > limit {
		return fmt.Errorf("it has more than %d bytes (TOOLCELL_IMAGE_MAX_SIZE)", limit)
	}
	_, err = plain.Seek(0, io.SeekStart)
	return err
}

// largeTempDir is the place for large temporary files (file-hierarchy(7)): /tmp may be in
// memory.
func largeTempDir() string {
	const large = "/var/tmp"
	if os.Getenv("TMPDIR") == "" && unix.Access(large, unix.W_OK) == nil {
		return large
	}
	return os.TempDir()
}

// A contextFile ends with its context. The tar reader skips any number of extended headers
// before it returns.
type contextFile struct {
	contextReader
	io.Seeker
}

func (b *tarBlobs) list(ctx context.Context, f io.ReadSeeker) error {
	for r := tar.NewReader(f); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it is not a tar archive, or a damaged one")
		}
		if err != nil {
			return fmt.Errorf("reading archive: %w", err)
		}
		switch {
		case len(b.parts)+len(b.links) >= maxArchiveFiles:
			return fmt.Errorf("the archive has more than %d files", maxArchiveFiles)
		case max(len(hdr.Name), len(hdr.Linkname)) > maxArchiveName:
			return fmt.Errorf("the archive has a name of more than %d bytes", maxArchiveName)
		}
		if err := b.addFile(f, hdr); err != nil {
			return err
		}
	}
}

// addFile records the place of a file. The tar reader has read only the header, so the
// content begins at the current position.
func (b *tarBlobs) addFile(f io.Seeker, hdr *tar.Header) error {
	name := archiveName(hdr.Name)
	switch hdr.Typeflag {
	case tar.TypeReg:
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		b.parts[name] = part{offset, hdr.Size}
	case tar.TypeSymlink: // docker save links layers that it has written already
		b.links[name] = archiveName(path.Join(path.Dir(name), hdr.Linkname))
	case tar.TypeLink:
		b.links[name] = archiveName(hdr.Linkname)
	}
	return nil
}

func archiveName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// find returns the place of a file, following links.
func (b *tarBlobs) find(name string) (part, error) {
	name = archiveName(name)
	for range maxArchiveLinks {
		if p, ok := b.parts[name]; ok {
			return p, nil
		}
		target, ok := b.links[name]
		if !ok {
			return part{}, &fs.PathError{Op: "open", Path: printable(name, 200), Err: fs.ErrNotExist}
		}
		name = target
	}
	return part{}, fmt.Errorf("too many links to %q in the archive", name)
}

func (b *tarBlobs) sizeOf(name string) int64 {
	p, _ := b.find(name)
	return p.size
}

// open opens the archive again for each file in it, so that an image holds no descriptor
// that has to be closed. The garbage collector closes a decompressed archive with the image.
func (b *tarBlobs) open(name string) (io.ReadCloser, error) {
	p, err := b.find(name)
	if err != nil {
		return nil, err
	}
	if b.plain != nil {
		return io.NopCloser(io.NewSectionReader(b.plain, p.offset, p.size)), nil
	}
	f, err := openRegular(b.file)
	if err != nil {
		return nil, err
	}
	return readCloser{io.NewSectionReader(f, p.offset, p.size), f}, nil
}
