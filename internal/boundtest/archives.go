package boundtest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Only returns the shapes with these names: for parsers that share what reads the rest.
func Only(shapes []Shape, names ...string) (some []Shape) {
	for _, name := range names {
		i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })
		if i < 0 {
			panic("boundtest: there is no shape " + name)
		}
		some = append(some, shapes[i])
	}
	return some
}

// Tar returns shapes of tar archives, which end where the size does.
func Tar() []Shape {
	return []Shape{
		tarOf("files", func(i int) *tar.Header { return &tar.Header{Name: fmt.Sprintf("f%d", i), Mode: 0o644} }),
		tarOf("twins", func(int) *tar.Header { return &tar.Header{Name: "f", Mode: 0o644} }),
		tarOf("folders", func(i int) *tar.Header {
			return &tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("d%d/", i), Mode: 0o755}
		}),
		tarOf("deep folders", func(i int) *tar.Header {
			return &tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("%s%d/", strings.Repeat("d/", 60), i), Mode: 0o755}
		}),
		tarOf("symlinks", func(i int) *tar.Header {
			return &tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprintf("l%d", i+1), Linkname: fmt.Sprintf("l%d", i)}
		}),
		tarOf("hard links", func(i int) *tar.Header {
			return &tar.Header{Typeflag: tar.TypeLink, Name: fmt.Sprintf("l%d", i), Linkname: "l0"}
		}),
		tarOf("whiteouts", func(i int) *tar.Header { return &tar.Header{Name: fmt.Sprintf("d/.wh.f%d", i)} }),
		tarOf("opaque folders", func(i int) *tar.Header { return &tar.Header{Name: fmt.Sprintf("d%d/.wh..wh..opq", i)} }),
		tarOf("long names", func(i int) *tar.Header {
			return &tar.Header{Name: fmt.Sprintf("%s%d", strings.Repeat("n", 900), i), Format: tar.FormatPAX}
		}),
		tarOf("names of a megabyte", func(i int) *tar.Header {
			return &tar.Header{Name: fmt.Sprintf("%s%d", strings.Repeat("n", 1000<<10), i), Format: tar.FormatPAX}
		}),
		tarOf("GNU names of a megabyte", func(i int) *tar.Header {
			return &tar.Header{Name: fmt.Sprintf("%s%d", strings.Repeat("n", 1000<<10), i), Format: tar.FormatGNU}
		}),
		tarOf("extended attributes", func(i int) *tar.Header {
			all := map[string]string{}
			for n := range 500 {
				all[fmt.Sprintf("SCHILY.xattr.user.a%d", n)] = "v"
			}
			return &tar.Header{Name: fmt.Sprintf("f%d", i), PAXRecords: all, Format: tar.FormatPAX}
		}),
		tarOf("global headers", func(int) *tar.Header {
			return &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "c"}}
		}),
		repeated("PAX headers in a row", "", rawTar(tar.TypeXHeader, "12 path=foo\n"), ""),
		repeated("GNU names in a row", "", rawTar(tar.TypeGNULongName, "name\x00"), ""),
		repeated("PAX records", rawTarHead(tar.TypeXHeader, 30*34000), "30 mtime=1350244992.023960108\n", ""),
		{"a sparse map", func(n int) []byte {
			head := []byte(rawTarHead(tar.TypeGNUSparse, 0))
			head[482] = 1 // the map goes on
			sum(head)
			entry := append([]byte(strings.Repeat("00000000000\x00", 42)), 1, 0, 0, 0, 0, 0, 0, 0)
			return append(head, bytes.Repeat(entry[:512], max(1, n/512-1))...)
		}},
		repeated("zeros", "", "\x00", ""),
		repeated("bytes that are no tar", "", "x", ""),
	}
}

func tarOf(name string, header func(i int) *tar.Header) Shape {
	return Shape{name, func(n int) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for i := 0; b.Len() < n; i++ {
			if err := w.WriteHeader(header(i)); err != nil {
				panic(err)
			}
		}
		return b.Bytes()[:n]
	}}
}

// rawTar is a header and its content.
func rawTar(kind byte, content string) string {
	return rawTarHead(kind, len(content)) + content + strings.Repeat("\x00", 512-len(content)%512)
}

func rawTarHead(kind byte, size int) string {
	head := make([]byte, 512)
	copy(head, "name")
	copy(head[100:], "0000644\x000000000\x000000000\x00")
	copy(head[124:], fmt.Sprintf("%011o\x0000000000000\x00", size))
	head[156] = kind
	copy(head[257:], "ustar  \x00")
	sum(head)
	return string(head)
}

// sum fills in the checksum of a header of tar.
func sum(head []byte) {
	copy(head[148:], "        ")
	all := 0
	for _, b := range head {
		all += int(b)
	}
	copy(head[148:], fmt.Sprintf("%06o\x00 ", all))
}

// Compressed returns shapes of gzip and zstd: much in little, and nothing in much.
func Compressed() []Shape {
	const frame = "\x28\xb5\x2f\xfd\x00" // without a checksum or a size; the window follows
	return []Shape{
		repeated("zeros in gzip", "", gzipped(make([]byte, 1<<20)), ""),
		repeated("empty members of gzip", "", gzipped(nil), ""),
		repeated("empty blocks of gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "\x00\x00\x00\xff\xff", ""),
		repeated("a name of gzip that does not end", "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03", "n", ""),
		repeated("zeros in zstd", frame+"\x88", "\x02\x00\x10\x00", ""),
		repeated("zeros in windows of zstd", "", frame+"\x88\x03\x00\x10\x00", ""),
		repeated("a window of zstd that is too large", "", frame+"\xf8\x03\x00\x10\x00", ""),
		repeated("empty blocks of zstd", frame+"\x88", "\x00\x00\x00", ""),
		repeated("empty frames of zstd", "", frame+"\x00\x01\x00\x00", ""),
		repeated("frames of zstd to skip", "", "\x50\x2a\x4d\x18\x00\x00\x00\x00", ""),
		repeated("bytes that are not compressed", "", "x", ""),
	}
}

func gzipped(content []byte) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.String()
}

// Zip returns shapes of zip files whose names stand between two texts.
func Zip(before, after string) []Shape {
	file := func(name string) zip.FileHeader {
		return zip.FileHeader{Name: before + name + after, Method: zip.Store}
	}
	return []Shape{
		zipOf("files", func(i int) zip.FileHeader { return file(fmt.Sprintf("f%d", i)) }),
		zipOf("twins", func(int) zip.FileHeader { return file("f") }),
		zipOf("folders", func(i int) zip.FileHeader { return zip.FileHeader{Name: fmt.Sprintf("d%d/", i)} }),
		zipOf("a folder for each file", func(i int) zip.FileHeader { return file(fmt.Sprintf("d%d/f", i)) }),
		zipOf("deep files", func(i int) zip.FileHeader { return file(strings.Repeat("d/", 90) + fmt.Sprint(i)) }),
		zipOf("names that are too deep", func(i int) zip.FileHeader { return file(strings.Repeat("d/", 30000) + fmt.Sprint(i)) }),
		zipOf("extra fields", func(i int) zip.FileHeader {
			h := file(fmt.Sprintf("f%d", i))
			h.Extra = bytes.Repeat([]byte{0xfe, 0xca, 0, 0}, 1000)
			return h
		}),
		zipOf("comments", func(i int) zip.FileHeader {
			h := file(fmt.Sprintf("f%d", i))
			h.Comment = strings.Repeat("c", 60000)
			return h
		}),
		{"a directory alone", func(n int) []byte { return zipDirectory(before+"f"+after, n) }},
		{"a bomb", func(n int) []byte { return zipBomb(before+"f"+after, n) }},
		{"a directory that lies", func(n int) []byte {
			end := make([]byte, 22)
			copy(end, "PK\x05\x06")
			binary.LittleEndian.PutUint16(end[8:], 0xfffe)
			binary.LittleEndian.PutUint16(end[10:], 0xfffe)
			binary.LittleEndian.PutUint32(end[12:], uint32(max(0, n-22)))
			return append(make([]byte, max(0, n-22)), end...)
		}},
		repeated("ends of a directory", "", "PK\x05\x06", ""),
		repeated("bytes that are no zip", "", "x", ""),
	}
}

func zipOf(name string, header func(i int) zip.FileHeader) Shape {
	return Shape{name, func(n int) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for i, left := 0, n-22; ; i++ { // an entry is there twice
			h := header(i)
			if left -= 2*len(h.Name) + 2*len(h.Extra) + len(h.Comment) + 30 + 46 + 16; left < 0 && i > 0 {
				break
			}
			if _, err := w.CreateHeader(&h); err != nil {
				panic(err)
			}
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		return b.Bytes()
	}}
}

// zipDirectory has a directory whose entries lead to nothing.
func zipDirectory(name string, n int) []byte {
	entry := make([]byte, 46)
	copy(entry, "PK\x01\x02\x14\x03\x14\x00")
	binary.LittleEndian.PutUint16(entry[28:], uint16(len(name)))
	binary.LittleEndian.PutUint32(entry[38:], 0o100644<<16)
	entry = append(entry, name...)
	count := min(max(1, (n-22)/len(entry)), 0xfffe)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], uint16(count))
	binary.LittleEndian.PutUint16(end[10:], uint16(count))
	binary.LittleEndian.PutUint32(end[12:], uint32(count*len(entry)))
	return append(bytes.Repeat(entry, count), end...)
}

// zipBomb has one file of zeros that takes a thousandth of its size.
func zipBomb(name string, n int) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	for zeros := make([]byte, 1<<20); err == nil && b.Len() < min(n, 256<<10)-1000; {
		_, err = f.Write(zeros)
		if err == nil {
			err = w.Flush()
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}
