package images

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

func TestDecompressor(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := encoder.EncodeAll([]byte("content"), nil)
	for kind := byte(0x50); kind < 0x60; kind++ {
		skipped := append(binary.LittleEndian.AppendUint32([]byte{kind, 0x2a, 0x4d, 0x18}, 3), "xyz"...)
		d, err := newDecompressor(bytes.NewReader(append(skipped, frame...)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(d); err != nil || string(got) != "content" {
			t.Errorf("after a frame to skip of kind %x: %q, %v", kind, got, err)
		}
		d.release()
	}
	for in, want := range map[string]string{
		"":             "",
		"tar":          "tar",
		"P*M\x17plain": "P*M\x17plain",
		string(frame):  "content",
	} {
		d, err := newDecompressor(strings.NewReader(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got, err := io.ReadAll(d); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
		d.release()
	}
}

// TestCompressionsThatImagesDoNotHave are named, with what to do.
func TestCompressionsThatImagesDoNotHave(t *testing.T) {
	for in, want := range map[string]string{"\xfd7zXZ\x00rest": "xz", "BZh91AY&SY": "bzip2"} {
		if _, err := newDecompressor(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), "compressed with "+want+",") || !strings.Contains(err.Error(), "gzip or zstd") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestDamagedCompressionIsCorruptContent, and what the stream below says is not.
func TestDamagedCompressionIsCorruptContent(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(bytes.Repeat([]byte("content"), 1000)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	damaged := packed.Bytes()
	damaged[len(damaged)-5] ^= 1
	read := func(r io.Reader) error {
		d, err := newDecompressor(r)
		if err != nil {
			return err
		}
		defer d.release()
		_, err = io.Copy(io.Discard, d)
		return err
	}
	if err := read(bytes.NewReader(damaged)); !errors.Is(err, errCorrupt) {
		t.Errorf("a wrong checksum: %v", err)
	}
	for name, below := range map[string]error{
		"a broken connection": fmt.Errorf("%w: reset", ErrUnavailable),
		"a refusal":           &RegistryError{text: "it has lost a part of the image"},
		"a broken disk":       &fs.PathError{Op: "read", Path: "a.tar", Err: syscall.EIO},
	} {
		for _, n := range []int{0, 3, 6, 9, 20} {
			if err := read(io.MultiReader(bytes.NewReader(damaged[:n]), iotest.ErrReader(below))); errors.Is(err, errCorrupt) || !errors.Is(err, below) {
				t.Errorf("%s after %d bytes: %v", name, n, err)
			}
		}
	}
}

// TestStreamThatEndsTooEarlyIsNotWhole: zstd takes this error for the end if it comes between two frames.
func TestStreamThatEndsTooEarlyIsNotWhole(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	frame := encoder.EncodeAll([]byte("content"), nil)
	d, err := newDecompressor(io.MultiReader(bytes.NewReader(frame), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.release()
	if got, err := io.ReadAll(d); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", got, err)
	}
}
