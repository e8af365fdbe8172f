package mcpproxy

import (
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"sync"
)

const (
	// blockSize is how much text one block begins to be closed at. A larger one
	// packs better, a smaller one gives a single tool faster.
	blockSize = 16 << 10
	maxBlock  = blockSize + 4*maxSchema
	maxPacked = 8 << 20 // of one server's tools, packed
)

// packed keeps the definitions of tools compressed, a few to a block: schemas
// of a hundred servers would fill memory, and next to none is ever read.
type packed struct {
	blocks []block
	count  int
	digest [sha256.Size]byte // of the definitions: equal ones are the same list
}

// block is compressed lines of JSON, one a tool.
type block struct {
	first int // the tool it begins with
	data  []byte
}

// A packer makes a packed of tools that come one by one.
type packer struct {
	limit  int // of what is packed; maxPacked if 0
	packed packed
	text   bytes.Buffer // of the block that is open
	out    bytes.Buffer
	first  int
	size   int
	hash   [sha256.Size]byte
	flate  *flate.Writer
}

var errTooMuch = errors.New("the definitions are too long")

func (p *packer) add(t Tool) error {
	if p.size > cmp.Or(p.limit, maxPacked) {
		return errTooMuch
	}
	e := json.NewEncoder(&p.text)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return err
	}
	p.packed.count++
	if p.text.Len() >= blockSize {
		return p.close()
	}
	return nil
}

// close compresses the block that is open.
func (p *packer) close() error {
	if p.text.Len() == 0 {
		return nil
	}
	p.hash = sha256.Sum256(append(p.hash[:], p.text.Bytes()...))
	p.out.Reset()
	if p.flate == nil {
		w, err := flate.NewWriter(nil, flate.DefaultCompression)
		if err != nil {
			return err
		}
		p.flate = w
	}
	p.flate.Reset(&p.out)
	if _, err := p.flate.Write(p.text.Bytes()); err != nil {
		return err
	}
	if err := p.flate.Close(); err != nil {
		return err
	}
	p.packed.blocks = append(p.packed.blocks, block{p.first, bytes.Clone(p.out.Bytes())})
	p.size += p.out.Len()
	p.first = p.packed.count
	p.text.Reset()
	return nil
}

func (p *packer) finish() (packed, error) {
	err := p.close()
	p.packed.digest = p.hash
	return p.packed, err
}

// read returns one definition.
func (p packed) read(i int) (t Tool, err error) {
	b := sort.Search(len(p.blocks), func(b int) bool { return p.blocks[b].first > i }) - 1
	if b < 0 || i < 0 || i >= p.count {
		return t, errDamaged
	}
	err = p.blocks[b].lines(func(n int, line []byte) (bool, error) {
		if p.blocks[b].first+n != i {
			return true, nil
		}
		return false, json.Unmarshal(line, &t)
	})
	if err == nil && t.Name == "" {
		err = errDamaged
	}
	return t, err
}

// each calls yield with every definition in turn.
func (p packed) each(yield func(i int, t Tool)) error {
	for _, b := range p.blocks {
		err := b.lines(func(n int, line []byte) (bool, error) {
			var t Tool
			if err := json.Unmarshal(line, &t); err != nil {
				return false, err
			}
			yield(b.first+n, t)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var errDamaged = errors.New("what is kept of its tools is damaged")

// lines calls line with the lines of the block until it says stop. They last
// no longer than the call.
func (b block) lines(line func(n int, text []byte) (more bool, err error)) error {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	text, err := u.unpack(b.data)
	if err != nil {
		return err
	}
	for n := 0; len(text) > 0; n++ {
		one, rest, _ := bytes.Cut(text, []byte("\n"))
		if more, err := line(n, one); err != nil || !more {
			return err
		}
		text = rest
	}
	return nil
}

// An unpacker is memory to unpack in, which would be most of the garbage that
// reading all tools makes.
type unpacker struct {
	flate io.ReadCloser
	text  bytes.Buffer
}

var unpackers = sync.Pool{New: func() any { return &unpacker{flate: flate.NewReader(nil)} }}

func (u *unpacker) unpack(data []byte) ([]byte, error) {
	if err := u.flate.(flate.Resetter).Reset(bytes.NewReader(data), nil); err != nil {
		return nil, err
	}
	if u.text.Cap() > 4*blockSize {
		u.text = bytes.Buffer{} // of one that was unusually large
	}
	u.text.Reset()
	if n, err := io.Copy(&u.text, io.LimitReader(u.flate, maxBlock+1)); err != nil || n > maxBlock {
		return nil, errDamaged
	}
	return u.text.Bytes(), nil
}
