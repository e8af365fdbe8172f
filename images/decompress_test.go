package images

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

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
