package packages

import (
	"archive/zip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// maxRecord bounds a RECORD, in bytes.
const maxRecord = 16 << 20

// A fileHash is what RECORD says of a file. The zero fileHash is that of a file of
// which it says nothing: itself and its signatures.
type fileHash struct {
	algorithm string
	sum       string
}

// readRecord reads a wheel's RECORD: which files it has, and their hashes.
func readRecord(z *zip.Reader, info string) (map[string]fileHash, error) {
	name := info + "/RECORD"
	f, err := z.Open(name)
	if err != nil {
		return nil, errors.New("it has no RECORD")
	}
	defer f.Close()
	r := csv.NewReader(io.LimitReader(f, maxRecord))
	r.FieldsPerRecord, r.ReuseRecord, r.LazyQuotes = -1, true, true
	hashes := map[string]fileHash{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading its RECORD: %w", err)
		}
		file := path.Clean(strings.Clone(row[0]))
		h, err := parseHash(file, info, row)
		if err != nil {
			return nil, err
		}
		hashes[file] = h
	}
	for _, own := range []string{name, name + ".jws", name + ".p7s"} {
		hashes[own] = fileHash{}
	}
	return hashes, nil
}

func parseHash(file, info string, row []string) (h fileHash, err error) {
	text := ""
	if len(row) > 1 {
		text = strings.Clone(row[1])
	}
	if text == "" {
		switch file {
		case info + "/RECORD", info + "/RECORD.jws", info + "/RECORD.p7s":
			return h, nil
		}
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
