package packages

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"

	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// maxRecord bounds a RECORD, in bytes.
const maxRecord = 16 << 20

// A fileHash is a file's hash in RECORD. The zero value is for files without one: RECORD
// itself and its signatures.
type fileHash struct {
	algorithm string
	sum       string
}

// maxRecordLine bounds a line of RECORD, in bytes: the longest name and a hash, quoted.
const maxRecordLine = 16 << 10

// readRecord reads a wheel's RECORD: its files and their hashes.
func readRecord(ctx context.Context, entries []*zip.File, info string) (map[string]fileHash, error) {
	name := info + "/RECORD"
	e := findEntry(entries, name)
	if e == nil {
		return nil, errors.New("it has no RECORD")
	}
	f, err := e.Open()
	if err != nil {
		return nil, errors.New("it has no RECORD")
	}
	defer f.Close()
	return parseRecord(&cachedir.ContextReader{Context: ctx, Inner: f}, name)
}

func parseRecord(in io.Reader, name string) (map[string]fileHash, error) {
	// To a CSV reader, the whole file would be one row if a quote were never closed, and a
	// row could have millions of fields. Names have no line breaks.
	lines := bufio.NewScanner(io.LimitReader(in, maxRecord))
	lines.Buffer(nil, maxRecordLine)
	hashes := map[string]fileHash{name: {}, name + ".jws": {}, name + ".p7s": {}}
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" {
			continue
		}
		file, rest := cutField(line)
		hash, _ := cutField(rest)
		file = path.Clean(file)
		if h, known := hashes[file]; known && h == (fileHash{}) {
			continue // RECORD itself, and its signatures
		}
		h, err := parseHash(file, hash)
		if err != nil {
			return nil, err
		}
		if hashes[file] = h; len(hashes) > maxFiles {
			return nil, fmt.Errorf("its RECORD has more than %d files", maxFiles)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("its RECORD has a line of more than %d bytes", maxRecordLine)
	case err != nil:
		return nil, fmt.Errorf("reading its RECORD: %w", err)
	}
	return hashes, nil
}

// cutField returns the first field of a row of CSV, and what is behind its comma.
func cutField(line string) (field, rest string) {
	if !strings.HasPrefix(line, `"`) {
		field, rest, _ = strings.Cut(line, ",")
		return field, rest
	}
	var b strings.Builder
	for rest = line[1:]; ; {
		before, after, closed := strings.Cut(rest, `"`)
		b.WriteString(before)
		next, doubled := strings.CutPrefix(after, `"`)
		if !closed || !doubled {
			_, rest, _ = strings.Cut(after, ",")
			return b.String(), rest
		}
		b.WriteByte('"')
		rest = next
	}
}

func parseHash(file, text string) (h fileHash, err error) {
	if text == "" {
		return h, fmt.Errorf("RECORD has no hash of %s", rootdir.Quote(file))
	}
	algorithm, sum, _ := strings.Cut(text, "=")
	h = fileHash{algorithm, strings.TrimRight(sum, "=")}
	if h.algorithm != "sha256" && h.algorithm != "sha384" && h.algorithm != "sha512" {
		return h, fmt.Errorf("RECORD has a hash of %s that is not SHA-256 or better", rootdir.Quote(file))
	}
	return h, nil
}

func (h fileHash) new() hash.Hash {
	switch h.algorithm {
	case "sha384":
		return sha512.New384()
	case "sha512":
		return sha512.New()
	}
	return sha256.New()
}

func (h fileHash) compare(sum hash.Hash) error {
	if h.algorithm != "" && base64.RawURLEncoding.EncodeToString(sum.Sum(nil)) != h.sum {
		return errors.New("it differs from its hash in RECORD")
	}
	return nil
}
