package packages

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRecordsHaveStrongHashes(t *testing.T) {
	for hash, want := range map[string]string{
		"sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU":                                            "",
		"sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=":                                           "",
		"sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb":                       "",
		"sha512=z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg_SpIdNs6c5H0NE8XYXysP-DGNKHfuwvY7kxvUdBeoGlODJ6-SfaPg": "",
		"sha384=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU":                                            "differs from its hash in RECORD",
		"md5=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU":                                               "is not SHA-256 or better",
		"sha1=2jmj7l5rSw0yVb_vlWAYkK_YBwk":                                                              "is not SHA-256 or better",
		"":                                                                                              `RECORD has no hash of "a.py"`,
	} {
		_, _, err := unpack(t, makeWheel(t, "a", wheelFile{name: "a.py", recordName: "a.py," + hash}), 1<<20)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", hash, err, want)
		}
	}
}

func TestRecordsNameFilesInOtherWays(t *testing.T) {
	for _, name := range []string{"./a.py", "x/../a.py", `"a.py"`, "\r\n\na.py"} {
		if _, _, err := unpack(t, makeWheel(t, "a", wheelFile{name: "a.py", recordName: name}), 1<<20); err != nil {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestLinesOfARecordAreBounded(t *testing.T) {
	const hash = ",sha256=x,1"
	for size, want := range map[int]string{maxRecordLine - 1: "", maxRecordLine + 1: fmt.Sprintf("its RECORD has a line of more than %d bytes", maxRecordLine)} {
		_, err := parseRecord(strings.NewReader(strings.Repeat("x", size-len(hash))+hash), "RECORD")
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d bytes: got %v, want %q", size, err, want)
		}
	}
}

func TestRecordsThatBreakAreRefused(t *testing.T) {
	broken := errors.New("broken")
	if hashes, err := parseRecord(brokenReader{broken}, "RECORD"); !errors.Is(err, broken) || hashes != nil {
		t.Errorf("got %v, %v", hashes, err)
	}
}

// TestWheelsHaveARecord: also one in a compression that Go does not know.
func TestWheelsHaveARecord(t *testing.T) {
	for _, name := range []string{"a-1.0.dist-info/METADATA", "a-1.0.dist-info/RECORD"} {
		if _, _, err := unpack(t, packedOtherwise(t, name), 1<<20); err == nil || err.Error() != "it has no RECORD" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// packedOtherwise is a zip of a file in a compression that Go does not know.
func packedOtherwise(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: 99, CompressedSize64: 1, UncompressedSize64: 1})
	if err == nil {
		_, err = w.Write([]byte("x"))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
