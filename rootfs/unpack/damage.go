package unpack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// Verify reads the contents of a layer again, and calls damaged for each entry whose content
// has changed since the layer was extracted. It returns an error if it cannot tell.
func Verify(ctx context.Context, layerDir string, damaged func(name string, problem error)) error {
	sum, buf := sha256.New(), make([]byte, 256<<10)
	return readEntries(entriesFile(layerDir), func(e *entry) error {
		if e.File == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.verify(layerDir, sum, buf); err != nil {
			damaged(e.Name, err)
		}
		return nil
	})
}

func (e *entry) verify(layerDir string, sum hash.Hash, buf []byte) error {
	f, err := openContent(contentFile(layerDir, e.File))
	if err != nil {
		return err
	}
	defer f.Close()
	sum.Reset()
	if _, err := io.CopyBuffer(sum, onlyReader{f}, buf); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), e.Sum[:]) {
		return errors.New("its content has changed")
	}
	return nil
}

// onlyReader hides the other methods of a file, so that io.CopyBuffer uses the buffer.
type onlyReader struct{ io.Reader }
