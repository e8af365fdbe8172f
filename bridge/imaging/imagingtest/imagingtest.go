// Package imagingtest makes hostile pictures for tests.
package imagingtest

import (
	"bytes"
	"encoding/binary"
)

// SlowJPEG returns a gray progressive JPEG with so many scans, of some thirty bytes
// each. They say that no block has coefficients, and a decoder walks over all
// blocks for each of them: 4,096 pixels a side take it 10 ms and more a scan.
func SlowJPEG(side, scans int) []byte {
	size := binary.BigEndian.AppendUint16(nil, uint16(side))
	const symbol = 0xe0 // a run of blocks without coefficients, whose length has 14 bits
	counts := [16]byte{1}
	head := bytes.Join([][]byte{
		{0xff, 0xd8},                                        // start of image
		{0xff, 0xc2, 0, 11, 8}, size, size, {1, 1, 0x11, 0}, // frame: one component
		{0xff, 0xc4, 0, 20, 0x10}, counts[:], {symbol}, // Huffman table: the symbol's code is a 0
	}, nil)
	scan := append([]byte{0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0}, emptyBlocks(side/8*side/8)...)
	return append(append(head, bytes.Repeat(scan, scans)...), 0xff, 0xd9)
}

// emptyBlocks are the bits for blocks without coefficients.
func emptyBlocks(blocks int) (out []byte) {
	const longest = 1<<15 - 1
	var bits []byte
	for ; blocks > 0; blocks -= longest {
		bits = append(append(bits, 0), bytes.Repeat([]byte{1}, 14)...)
	}
	for len(bits)%8 != 0 {
		bits = append(bits, 1)
	}
	for ; len(bits) > 0; bits = bits[8:] {
		var b byte
		for _, bit := range bits[:8] {
			b = b<<1 | bit
		}
		if out = append(out, b); b == 0xff {
			out = append(out, 0) // it is no marker
		}
	}
	return out
}
