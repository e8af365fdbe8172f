package unpack

import (
	"archive/tar"
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// An entry is the part of an entry of a layer's tar that a root needs: without owners,
// devices, setuid bits and extended attributes.
type entry struct {
	Name string // as the tar has it
	Link string // target of a symlink or hard link
	Type byte   // of package tar
	Mode fs.FileMode
	Time time.Time
	File int // number of the content in the layer's folder, from 1; 0 if there is none
	Size int64
	Sum  [32]byte // SHA-256 of the content
}

// newEntry converts a header. kept is false if the entry is ignored.
func newEntry(hdr *tar.Header) (e entry, kept bool, err error) {
	e = entry{Name: hdr.Name, Type: hdr.Typeflag, Time: clampTime(hdr.ModTime)}
	// Perm excludes setuid and setgid: nothing in a sandbox may gain privileges by them, and
	// on the host the file may belong to root.
	e.Mode = hdr.FileInfo().Mode().Perm()
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		e.Type = tar.TypeReg
	case tar.TypeDir:
		// Its owner, which is us, must be able to list and delete it.
		e.Mode |= hdr.FileInfo().Mode()&fs.ModeSticky | 0o500
	case tar.TypeSymlink, tar.TypeLink:
		e.Link = hdr.Linkname
	case tar.TypeXGlobalHeader: // comments by the maker of the tar
		return e, false, nil
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo: // only takes the place of what was there
	default:
		return e, false, fmt.Errorf("unknown type %q of tar entry", hdr.Typeflag)
	}
	// In most images the owner is root, and other engines run the code as root. Here the code
	// has its own ID, which otherwise could not reach a Python below /root.
	e.Mode |= e.Mode >> 6 & 0o005
	return e, true, nil
}

// isWhiteout reports whether the entry only deletes something.
func (e *entry) isWhiteout() bool { return strings.HasPrefix(path.Base(e.Name), whiteoutPrefix) }

// readEntries calls each for the entries in a file, in the order of the tar.
func readEntries(file string, each func(*entry) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for dec := gob.NewDecoder(bufio.NewReaderSize(f, 64<<10)); ; {
		var e entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %q: %w", file, err)
		}
		if err := each(&e); err != nil {
			return err
		}
	}
}
