package packages

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/seeds"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// unpack unpacks a wheel of project a into a new folder.
func unpack(t *testing.T, wheel []byte, most int64) (dir string, rec *wheelRecord, err error) {
	t.Helper()
	above := t.TempDir()
	file := filepath.Join(above, "x.whl")
	if err := os.WriteFile(file, wheel, 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(above, "dir", "files")
	if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	rec, err = unpackWheel(t.Context(), file, dir, lockedPackage{Name: "a", Version: "1.0"}, newBudget(most))
	for _, outside := range []string{above, filepath.Dir(dir)} {
		entries, _ := os.ReadDir(outside)
		for _, e := range entries {
			if n := e.Name(); n != "x.whl" && n != "dir" && n != "files" {
				t.Errorf("%s is outside of the wheel's folder", filepath.Join(outside, n))
			}
		}
	}
	return dir, rec, err
}

func TestUnpackKeepsWhatCodeImports(t *testing.T) {
	dir, rec, err := unpack(t, makeWheel(t, "a",
		wheelFile{name: "a/"}, wheelFile{name: "a/__init__.py", content: "x"},
		wheelFile{name: "a/__init__.pyi"}, wheelFile{name: "a/data.bin", content: "\x00"},
		wheelFile{name: "a-1.0.data/purelib/pure.py"}, wheelFile{name: "a-1.0.data/platlib/b/native.so"},
		wheelFile{name: "a-1.0.data/scripts/a", content: "#!python"}, wheelFile{name: "a-1.0.data/headers/a.h"}, wheelFile{name: "a-1.0.data/data/etc/a.conf"},
		wheelFile{name: "a-1.0.data/purelib"}, wheelFile{name: "folder", mode: fs.ModeDir | 0o755},
		wheelFile{name: "evil.pth", content: "import os; os.system('x')"}, wheelFile{name: "a-1.0.data/purelib/Evil2.PTH"}, wheelFile{name: "a/inside.pth"}, wheelFile{name: HiddenName, content: "numpy"},
		wheelFile{name: "a/__pycache__/__init__.cpython-313.pyc", content: "hostile bytecode"},
		wheelFile{name: "a-1.0.dist-info/RECORD.jws", unlisted: true},
	), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/__init__.py", "a/__init__.pyi", "a/data.bin", "a/inside.pth", "a-1.0.dist-info/METADATA", "a-1.0.dist-info/RECORD", "a-1.0.dist-info/RECORD.jws", "b/native.so", "pure.py"}
	if got := tree(t, dir); !slices.Equal(got, want) || rec.Files != len(want) {
		t.Errorf("got %q, %+v", got, rec)
	}
}

func TestUnpackRefusesHostileWheels(t *testing.T) {
	for name, c := range map[string]struct {
		files []wheelFile
		want  string
	}{
		"traversal":               {[]wheelFile{{name: "../evil.py"}}, "not a name"},
		"traversal in the middle": {[]wheelFile{{name: "a/../../evil.py"}}, "not a name"},
		"traversal out of data":   {[]wheelFile{{name: "a-1.0.data/purelib/../../../evil.py"}}, "not a name"},
		"absolute":                {[]wheelFile{{name: "/evil.py"}}, "not a name"},
		"backslash":               {[]wheelFile{{name: `..\evil.py`}}, "not a name"},
		"drive":                   {[]wheelFile{{name: "C:evil.py"}}, "not a name"},
		"empty part":              {[]wheelFile{{name: "a//b.py"}}, "not a name"},
		"NUL":                     {[]wheelFile{{name: "a\x00.py"}}, "not a name"},
		"newline":                 {[]wheelFile{{name: "a\nb.py"}}, "not a name"},
		"not UTF-8":               {[]wheelFile{{name: "a\xff.py"}}, "not a name"},
		"long":                    {[]wheelFile{{name: strings.Repeat("x", 5000)}}, "not a name"},
		"long in all":             {[]wheelFile{{name: strings.Repeat(strings.Repeat("x", 200)+"/", 21) + "b.py"}}, "not a name"},
		"the folder itself":       {[]wheelFile{{name: "."}}, "not a name"},
		"a long part":             {[]wheelFile{{name: "a/" + strings.Repeat("x", 256) + "/b.py"}}, "not a name"},
		"symlink":                 {[]wheelFile{{name: "a/link", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, "no regular file"},
		"symlink then file":       {[]wheelFile{{name: "d", content: "/tmp", mode: fs.ModeSymlink | 0o777}, {name: "d/x"}}, "no regular file"},
		"device":                  {[]wheelFile{{name: "a/dev", mode: fs.ModeDevice | 0o666}}, "no regular file"},
		"pipe":                    {[]wheelFile{{name: "a/pipe", mode: fs.ModeNamedPipe | 0o666}}, "no regular file"},
		"twice":                   {[]wheelFile{{name: "a.py"}, {name: "a.py"}}, "twice"},
		"twice by data":           {[]wheelFile{{name: "a.py"}, {name: "a-1.0.data/purelib/a.py"}}, "twice"},
		"case":                    {[]wheelFile{{name: "a/x.py"}, {name: "a/X.py"}}, "twice"},
		"case of a folder":        {[]wheelFile{{name: "a/x.py"}, {name: "A/y.py"}}, "is there also as"},
		"file and folder":         {[]wheelFile{{name: "a"}, {name: "a/x.py"}}, `"a" is there as a file and as a folder`},
		"folder and file":         {[]wheelFile{{name: "a/x.py"}, {name: "A"}}, `"A" is there as a file and as a folder`},
		"not in RECORD":           {[]wheelFile{{name: "a.py", unlisted: true}}, "RECORD does not have it"},
		"other hash":              {[]wheelFile{{name: "a.py", badHash: true}}, "differs from its hash in RECORD"},
		"large":                   {[]wheelFile{{name: "a.py", content: strings.Repeat("x", 2<<20)}}, "maxBytes"},
		"two dist-infos":          {[]wheelFile{{name: "b-1.0.dist-info/METADATA"}}, "2 folders .dist-info"},
		"a dist-info in data":     {[]wheelFile{{name: "a-1.0.data/purelib/b-1.0.dist-info/METADATA"}}, "a second .dist-info"},
		"a dist-info in capitals": {[]wheelFile{{name: "B-1.0.DIST-INFO/METADATA"}}, "a second .dist-info"},
		"deep":                    {[]wheelFile{{name: strings.Repeat("a/", maxDepth) + "b.py"}}, "not a name"},
	} {
		if dir, _, err := unpack(t, makeWheel(t, "a", c.files...), 1<<20); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v; want %q", name, tree(t, dir), err, c.want)
		}
	}
}

// TestUnpackReadsManyNamesOnce: a wheel of 190,000 folders .dist-info took 73 s, since each
// was compared with those before it.
//
//test:alone
func TestUnpackReadsManyNamesOnce(t *testing.T) {
	many := func(name func(i int) string) (files []wheelFile) {
		for i := range 60_000 {
			files = append(files, wheelFile{name: name(i)})
		}
		return files
	}
	for want, files := range map[string][]wheelFile{
		"60001 folders .dist-info": many(func(i int) string { return fmt.Sprintf("%05d.dist-info/x", i) }),
		"more than 50000 folders":  many(func(i int) string { return fmt.Sprintf("%d/x", i) }),
	} {
		if _, _, err := unpack(t, makeWheel(t, "a", files...), 1<<20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestUnpackRefusesFilesThatOverlap: many names can lead to the same bytes.
func TestUnpackRefusesFilesThatOverlap(t *testing.T) {
	of := func(name string, size uint64) *zip.File {
		f := &zip.File{Name: name, CompressedSize64: size}
		f.SetMode(0o644)
		return f
	}
	if files, err := checkEntries(t.Context(), []*zip.File{of("a", 50), of("b", 50)}, 100); err != nil || len(files) != 2 {
		t.Errorf("got %v, %v", files, err)
	}
	for _, size := range []uint64{51, 1 << 40, 1<<64 - 50} {
		if _, err := checkEntries(t.Context(), []*zip.File{of("a", 50), of("b", size)}, 100); err == nil || !strings.Contains(err.Error(), "overlap") {
			t.Errorf("%d: got %v", size, err)
		}
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	file := filepath.Join(t.TempDir(), "x.whl")
	if err := os.WriteFile(file, makeWheel(t, "a", wheelFile{name: "a.py"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unpackWheel(ctx, file, filepath.Join(t.TempDir(), "files"), lockedPackage{Name: "a", Version: "1.0"}, newBudget(1<<20)); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if _, err := io.Copy(io.Discard, &cachedir.ContextReader{Context: ctx, Inner: strings.NewReader("x")}); !errors.Is(err, stopped) {
		t.Errorf("within a file: %v", err)
	}
}

func TestUnpackLeavesOutWhatNamesAnotherPackage(t *testing.T) {
	dir, _, err := unpack(t, makeWheel(t, "a", wheelFile{name: "b.egg-info/PKG-INFO"}, wheelFile{name: "a-1.0.data/purelib/C.EGG-INFO"}, wheelFile{name: "a/_vendor/d-1.0.dist-info/METADATA"}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/_vendor/d-1.0.dist-info/METADATA", "a-1.0.dist-info/METADATA", "a-1.0.dist-info/RECORD"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestUnpackRefusesAnotherPackage than the lock names, by which the policy was asked.
func TestUnpackRefusesAnotherPackage(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ info, metadata, name, version, want string }{
		{"a-1.0", "Name: a\nVersion: 1.0\n", "a", "1.0", ""},
		{"A_b-1.0.0", "Name: a.B\r\nVersion: v1\r\n\r\nName: c\n", "a-b", "1.0", ""},
		{"a-1.0_1", "Version: 1.0.post1\nName: a\nDescription: x\n Name: b\n", "a", "1.0.post1", ""},
		{"a-1.0+cpu", "Name: a\nVersion: 1.0+CPU\n", "a", "1.0+cpu", ""},
		{"a-1.0", "Name: a\nVersion: 1.0\n", "a", "9.0", `it is a wheel of "a-1.0.dist-info", not of a 9.0`},
		{"a-1.0", "Name: a\nVersion: 1.0\n", "b", "1.0", `it is a wheel of "a-1.0.dist-info", not of b`},
		{"a-9.0", "Name: a\nVersion: 1.0\n", "a", "9.0", `METADATA is of "a" "1.0", not of a 9.0`},
		{"a-1.0", "Name: b\nVersion: 1.0\n", "a", "1.0", `METADATA is of "b"`},
		{"a-1.0", "Name: a\nVersion: 1.0+x\n", "a", "1.0", `METADATA is of "a" "1.0+x"`},
		{"a-1.0", "Name: a\nVersion: 1.0\nName: b\n", "a", "1.0", "it has name twice"},
		{"a-1.0", "Name: a\n\nVersion: 1.0\n", "a", "1.0", `METADATA is of "a" ""`},
		{"a-1.0", strings.Repeat("x", 1<<20), "a", "1.0", `METADATA is of ""`},
		{"a", "Name: a\nVersion: 1.0\n", "a", "1.0", "it is a wheel of"},
		{"a-1.0", "", "a", "1.0", "no METADATA"},
		{"", "", "a", "1.0", "no .dist-info"},
	} {
		folder := filepath.Join(dir, strconv.Itoa(i))
		info := filepath.Join(folder, c.info+".dist-info")
		if c.info == "" {
			info = filepath.Join(folder, "a")
		}
		if err := os.MkdirAll(info, 0o755); err != nil {
			t.Fatal(err)
		}
		if c.metadata != "" {
			if err := os.WriteFile(filepath.Join(info, "METADATA"), []byte(c.metadata), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			t.Fatal(err)
		}
		err = checkIdentity(root, lockedPackage{Name: c.name, Version: c.version})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
		root.Close()
	}
}

func TestRecordIsReadLineByLine(t *testing.T) {
	for line, want := range map[string][2]string{
		"a/b.py,sha256=x,1":          {"a/b.py", "sha256=x,1"},
		`"a,b.py","sha256=x",1`:      {"a,b.py", `"sha256=x",1`},
		`"say ""hi"".py",sha256=x,1`: {`say "hi".py`, "sha256=x,1"},
		`"never closed, it goes on`:  {"never closed, it goes on", ""},
		"":                           {"", ""},
	} {
		if field, rest := cutField(line); field != want[0] || rest != want[1] {
			t.Errorf("%s: got %q, %q", line, field, rest)
		}
	}
	for want, name := range map[string]string{"a line of more than": strings.Repeat(",", 100_000), "RECORD has no hash": `"` + strings.Repeat("x", 1000)} {
		if _, _, err := unpack(t, makeWheel(t, "a", wheelFile{name: "a.py", recordName: name}), 1<<20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %v", name, err)
		}
	}
}

// TestFilesOfARecordAreBounded counts RECORD itself and its two signatures.
//
//test:alone
func TestFilesOfARecordAreBounded(t *testing.T) {
	const name, own = "a-1.0.dist-info/RECORD", 3
	var b strings.Builder
	for i := range maxFiles - own {
		fmt.Fprintf(&b, "%d,sha256=x,1\n", i)
	}
	b.WriteString(name + ",,\n0,sha256=x,1\n") // both are known
	if hashes, err := parseRecord(strings.NewReader(b.String()), name); err != nil || len(hashes) != maxFiles {
		t.Errorf("the most: got %d, %v", len(hashes), err)
	}
	b.WriteString("more,sha256=x,1\n")
	want := fmt.Sprintf("its RECORD has more than %d files", maxFiles)
	if hashes, err := parseRecord(strings.NewReader(b.String()), name); err == nil || err.Error() != want {
		t.Errorf("one more: got %d, %v, want %s", len(hashes), err, want)
	}
}

// TestUnpackRefusesBombs has a header that says less than there is: what it says is
// spent before, and no more is read.
func TestUnpackRefusesBombs(t *testing.T) {
	bomb := makeWheel(t, "a", wheelFile{name: "zeros", content: strings.Repeat("\x00", 10<<20)})
	if len(bomb) > 100<<10 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	if _, _, err := unpack(t, bomb, 1<<20); err == nil || !strings.Contains(err.Error(), "maxBytes") {
		t.Errorf("got %v", err)
	}
	// Sizes stand behind the content (little-endian), and in the directory at the end.
	size := []byte{0, 0, 0xa0, 0} // 10 MiB
	lying := bytes.ReplaceAll(bomb, size, []byte{1, 0, 0, 0})
	if dir, _, err := unpack(t, lying, 1<<20); err == nil {
		t.Errorf("a lying header: got %q", tree(t, dir))
	} else if info, err := os.Stat(filepath.Join(dir, "zeros")); err == nil && info.Size() > 2 {
		t.Errorf("%d bytes were written", info.Size())
	}
}

// TestUnpackBoundsTheDirectory of a wheel, which is held in memory.
func TestUnpackBoundsTheDirectory(t *testing.T) {
	var files []wheelFile
	for i := range maxDirectory / 4000 {
		files = append(files, wheelFile{name: strings.Repeat("x", 3990) + strconv.Itoa(i), unlisted: true})
	}
	if _, _, err := unpack(t, makeWheel(t, "a", files...), 1<<20); err == nil || !strings.Contains(err.Error(), "its directory has more than") {
		t.Errorf("got %v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(makeWheel(f, "a", wheelFile{name: "a/x.py", content: "x"}))
	for _, wheel := range seeds.Files(f, "rootfs/packages/testdata/*.whl") {
		f.Add(wheel)
	}
	f.Fuzz(func(t *testing.T, wheel []byte) {
		_, _, _ = unpack(t, wheel, 1<<20)
	})
}
