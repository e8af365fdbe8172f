package imaging

import (
	"encoding/binary"
	"io"
)

// pngChunks reads a PNG without the chunks that its pixels do not need. Their checksums
// are often wrong, since programs edit profiles and texts in place; image/png refuses
// the whole picture then, and no other decoder does.
type pngChunks struct {
	from io.Reader
	head []byte // of the chunk, as far as it has not been read
	left int64  // what follows of it
	any  bool   // the signature has been read
}

func newPNGChunks(from io.Reader) io.Reader { return &pngChunks{from: from} }

func (p *pngChunks) Read(b []byte) (int, error) {
	if len(p.head) == 0 && p.left == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	n, err := p.from.Read(b[:min(int64(len(b)), p.left)])
	p.left -= int64(n)
	return n, err
}

// next reads up to the next chunk that is needed. Each has a length (4), a type (4),
// whose lower case means that it is not critical, that many bytes and a checksum (4).
func (p *pngChunks) next() error {
	for {
		p.head = make([]byte, 8)
		if _, err := io.ReadFull(p.from, p.head); err != nil {
			p.head = nil
			return err
		}
		if !p.any {
			p.any = true // the signature is as long
			return nil
		}
		p.left = int64(binary.BigEndian.Uint32(p.head)) + 4
		if p.head[4]&0x20 == 0 || string(p.head[4:]) == "tRNS" { // transparency
			return nil
		}
		if _, err := io.CopyN(io.Discard, p.from, p.left); err != nil {
			p.head, p.left = nil, 0
			return err
		}
		p.left = 0
	}
}
