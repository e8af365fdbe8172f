package unpack

import (
	"archive/tar"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// maxNames bounds the memory for names of directories; real images need less than 10 MiB.
const maxNames = 64 << 20

// A Budget is the space that an image may use. Its layers, which are unpacked concurrently,
// share it.
type Budget struct {
	maxBytes   int64
	maxEntries int

	mu      sync.Mutex
	bytes   int64
	entries int
	names   int
}

// NewBudget allows an image bytes of content and names, and entries in its tars.
func NewBudget(maxBytes int64, maxEntries int) *Budget {
	return &Budget{maxBytes: maxBytes, maxEntries: maxEntries}
}

// Spend counts a layer that was already extracted.
func (b *Budget) Spend(u Usage) error {
	if err := b.spendEntries(u.Entries); err != nil {
		return err
	}
	return b.spendBytes(u.Bytes)
}

// SpareEntries returns how many entries the image may still have.
func (b *Budget) SpareEntries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.maxEntries-b.entries, 0)
}

func (b *Budget) spendEntries(entries int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries += entries; b.entries > b.maxEntries {
		return fmt.Errorf("the image has more files and directories than the limit of %d (TOOLCELL_IMAGE_MAX_FILES)", b.maxEntries)
	}
	return nil
}

// spendEntry counts one entry of a layer.
func (b *Budget) spendEntry(hdr *tar.Header) error {
	if err := b.spendEntries(1); err != nil {
		return err
	}
	if n := max(len(hdr.Name), len(hdr.Linkname)); n > rootdir.MaxPath {
		return fmt.Errorf("a path has %d bytes, more than the limit of %d", n, rootdir.MaxPath)
	}
	return nil
}

// spendBytes counts the bytes of a file before they are written.
func (b *Budget) spendBytes(size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size > b.maxBytes-b.bytes {
		return fmt.Errorf("the image is larger unpacked than the limit of %d bytes (TOOLCELL_IMAGE_MAX_SIZE)", b.maxBytes)
	}
	b.bytes += size
	return nil
}

// spendName counts the memory that a directory's name takes.
func (b *Budget) spendName(full string) error {
	if b.names += len(full); b.names > maxNames {
		return fmt.Errorf("the names of the image's directories have more bytes than the limit of %d", maxNames)
	}
	return nil
}

// limitedReader fails, rather than ends, after left bytes.
type limitedReader struct {
	inner io.Reader
	left  int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.inner.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("the layer's tar is longer than the limits of files and bytes allow")
	}
	return n, err
}

// clampTime limits a time to what every file system can store, from the epoch on.
func clampTime(t time.Time) time.Time {
	if first := time.Unix(0, 0); t.Before(first) {
		return first
	}
	if last := time.Unix(1<<32-1, 0); t.After(last) {
		return last
	}
	return t
}
