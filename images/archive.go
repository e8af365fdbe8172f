package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	maxArchiveFiles = 20000 // an image of 1000 layers has some 3000
	maxArchiveLinks = 10    // links to links
)

// fromOCIArchive returns an image of a tar of a layout. The tar is read in
// place: nothing is extracted that would have to be cleaned up.
func fromOCIArchive(file, tag string, want v1.Platform) (v1.Image, error) {
	b, err := openArchive(file)
	if err != nil {
		return nil, err
	}
	return fromLayout(b, tag, want)
}

// tarBlobs are the files of an uncompressed tar, found by their offsets.
type tarBlobs struct {
	file  string
	parts map[string]part
	links map[string]string
}

type part struct{ offset, size int64 }

// openArchive lists a tar archive by jumping from header to header.
func openArchive(file string) (*tarBlobs, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := requireRegular(f); err != nil {
		return nil, err
	}
	if err := refuseCompressed(f); err != nil {
		return nil, err
	}
	b := &tarBlobs{file: file, parts: map[string]part{}, links: map[string]string{}}
	for r := tar.NewReader(f); ; {
		hdr, err := r.Next()
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading archive: %w", err)
		}
		if len(b.parts)+len(b.links) >= maxArchiveFiles {
			return nil, fmt.Errorf("the archive has more than %d files", maxArchiveFiles)
		}
		if err := b.addFile(f, hdr); err != nil {
			return nil, err
		}
	}
}

// addFile records where a file is. The tar reader reads no further than the header,
// so the file's position is where the content begins.
func (b *tarBlobs) addFile(f *os.File, hdr *tar.Header) error {
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

func (b *tarBlobs) open(name string) (io.ReadCloser, error) {
	name = archiveName(name)
	for range maxArchiveLinks {
		if p, ok := b.parts[name]; ok {
			return b.openPart(p)
		}
		target, ok := b.links[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		name = target
	}
	return nil, fmt.Errorf("too many links to %q in the archive", name)
}

// sizeOf returns the size of a file in the archive, or 0 if it is not there.
func (b *tarBlobs) sizeOf(name string) int64 {
	name = archiveName(name)
	for range maxArchiveLinks {
		if p, ok := b.parts[name]; ok {
			return p.size
		}
		name = b.links[name]
	}
	return 0
}

// openPart opens the archive anew for each file in it, so that an image holds no
// descriptor that would have to be closed.
func (b *tarBlobs) openPart(p part) (io.ReadCloser, error) {
	f, err := os.Open(b.file)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, p.offset, p.size), f}, nil
}

func refuseCompressed(f *os.File) error {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return errors.New("the archive is compressed: decompress it first with gunzip")
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return errors.New("the archive is compressed: decompress it first with unzstd")
	}
	return nil
}
