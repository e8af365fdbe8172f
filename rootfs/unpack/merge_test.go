package unpack_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/rootfs/unpack"
	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestUnpackLayers(t *testing.T) {
	base := []entry{dir("a"), file("a/1", "one"), file("a/2", "two"), dir("a/b"), file("a/b/3", "three"), symlink("l", "a"), symlink("abs", "/a/b")}
	for name, c := range map[string]struct {
		upper []entry
		want  string
	}{
		"whiteout of a file":              {[]entry{whiteout("a/.wh.1")}, "a/ a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"whiteout of a directory":         {[]entry{whiteout("a/.wh.b")}, "a/ a/1=one a/2=two abs->/a/b l->a"},
		"whiteout of a symlink":           {[]entry{whiteout(".wh.l")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b"},
		"whiteout through a symlink":      {[]entry{whiteout("l/.wh.1")}, "a/ a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"whiteout of nothing":             {[]entry{whiteout("a/.wh.x"), whiteout("x/y/.wh.z"), whiteout("a/1/.wh.x")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"whiteout, then the same name":    {[]entry{whiteout("a/.wh.1"), file("a/1", "new")}, "a/ a/1=new a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"the same name, then a whiteout":  {[]entry{file("a/1", "new"), whiteout("a/.wh.1")}, "a/ a/1=new a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"a directory, then its whiteout":  {[]entry{file("a/b/4", "four"), whiteout("a/.wh.b")}, "a/ a/1=one a/2=two a/b/ a/b/4=four abs->/a/b l->a"},
		"opaque first":                    {[]entry{whiteout("a/.wh..wh..opq"), file("a/new", "n")}, "a/ a/new=n abs->/a/b l->a"},
		"opaque last hides no siblings":   {[]entry{file("a/new", "n"), file("a/b/new", "m"), whiteout("a/.wh..wh..opq")}, "a/ a/b/ a/b/new=m a/new=n abs->/a/b l->a"},
		"opaque twice":                    {[]entry{whiteout("a/.wh..wh..opq"), file("a/1", "n"), whiteout("a/.wh..wh..opq")}, "a/ a/1=n abs->/a/b l->a"},
		"opaque root":                     {[]entry{file("x", "y"), whiteout(".wh..wh..opq")}, "x=y"},
		"opaque through a symlink":        {[]entry{whiteout("abs/.wh..wh..opq")}, "a/ a/1=one a/2=two a/b/ abs->/a/b l->a"},
		"opaque of a file":                {[]entry{whiteout("a/1/.wh..wh..opq")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"notes of AUFS":                   {[]entry{file(".wh..wh.plnk", ""), file("a/.wh..wh.aufs", "")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"file replaced by directory":      {[]entry{dir("a/1"), file("a/1/x", "y")}, "a/ a/1/ a/1/x=y a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"directory replaced by file":      {[]entry{file("a", "file")}, "a=file abs->/a/b l->a"},
		"directory replaced by symlink":   {[]entry{symlink("a/b", "1")}, "a/ a/1=one a/2=two a/b->1 abs->/a/b l->a"},
		"symlink replaced by directory":   {[]entry{dir("l"), file("l/x", "y")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l/ l/x=y"},
		"symlink replaced by file":        {[]entry{file("l", "y")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l=y"},
		"directory kept by directory":     {[]entry{dir("a/b"), file("a/b/4", "four")}, "a/ a/1=one a/2=two a/b/ a/b/3=three a/b/4=four abs->/a/b l->a"},
		"file below a relative symlink":   {[]entry{file("l/x", "y")}, "a/ a/1=one a/2=two a/b/ a/b/3=three a/x=y abs->/a/b l->a"},
		"file below an absolute symlink":  {[]entry{file("abs/x", "y")}, "a/ a/1=one a/2=two a/b/ a/b/3=three a/b/x=y abs->/a/b l->a"},
		"hard link":                       {[]entry{hardlink("h", "a/1")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b h=one l->a"},
		"hard link through a symlink":     {[]entry{hardlink("h", "abs/3")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b h=three l->a"},
		"hard link to a symlink":          {[]entry{hardlink("h", "l")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b h->a l->a"},
		"hard link over a file":           {[]entry{hardlink("a/2", "a/1")}, "a/ a/1=one a/2=one a/b/ a/b/3=three abs->/a/b l->a"},
		"absolute names":                  {[]entry{file("/a/x", "y"), hardlink("/h", "/a/1")}, "a/ a/1=one a/2=two a/b/ a/b/3=three a/x=y abs->/a/b h=one l->a"},
		"missing directories":             {[]entry{file("x/y/z", "w")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a x/ x/y/ x/y/z=w"},
		"the root itself":                 {[]entry{dir("./"), dir("."), dir("/")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"a file twice in one layer":       {[]entry{file("x", "1"), file("x", "2")}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a x=2"},
		"link removed while it is open":   {[]entry{file("l/x", "1"), whiteout(".wh.l"), file("l/y", "2")}, "a/ a/1=one a/2=two a/b/ a/b/3=three a/x=1 abs->/a/b l/ l/y=2"},
		"hard link into a new directory":  {[]entry{hardlink("h", "a/b/3"), file("a/b", "f"), dir("a/b"), file("a/b/4", "four"), hardlink("i", "a/b/4")}, "a/ a/1=one a/2=two a/b/ a/b/4=four abs->/a/b h=three i=four l->a"},
		"parent removed while it is open": {[]entry{file("a/b/x", "1"), file("a", "f"), dir("a"), file("a/b/x", "2")}, "a/ a/b/ a/b/x=2 abs->/a/b l->a"},
		"device replaces a file":          {[]entry{special("a/1", tar.TypeChar)}, "a/ a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"pipe replaces a directory":       {[]entry{special("a/b", tar.TypeFifo)}, "a/ a/1=one a/2=two abs->/a/b l->a"},
		"file replaces a device":          {[]entry{special("a/1", tar.TypeBlock), file("a/1", "new"), hardlink("h", "a/1")}, "a/ a/1=new a/2=two a/b/ a/b/3=three abs->/a/b h=new l->a"},
		"hard link to a device":           {[]entry{special("null", tar.TypeChar), hardlink("a/1", "null"), hardlink("zero", "a/1")}, "a/ a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"device through a symlink":        {[]entry{special("l/1", tar.TypeChar), hardlink("h", "a/1")}, "a/ a/2=two a/b/ a/b/3=three abs->/a/b l->a"},
		"device below what is missing":    {[]entry{special("x/null", tar.TypeChar)}, "a/ a/1=one a/2=two a/b/ a/b/3=three abs->/a/b l->a x/"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := unpackAll(t, pack(t, base...), pack(t, c.upper...))
			if err != nil {
				t.Fatal(err)
			}
			if got := listTree(t, root); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestUnpackStaysInside(t *testing.T) {
	for name, c := range map[string]struct {
		layer []entry
		want  string
	}{
		"dot dot":                  {[]entry{file("../secret", "x")}, "secret=x"},
		"dot dot in the middle":    {[]entry{file("a/../../../secret", "x")}, "secret=x"},
		"absolute":                 {[]entry{file("/etc/passwd", "x")}, "etc/ etc/passwd=x"},
		"symlink to parent":        {[]entry{symlink("up", ".."), file("up/secret", "x")}, "secret=x up->.."},
		"symlink far up":           {[]entry{symlink("up", "../../../.."), file("up/secret", "x")}, "secret=x up->../../../.."},
		"absolute symlink":         {[]entry{symlink("etc", "/etc"), file("etc/passwd", "x")}, ""},
		"dangling symlink":         {[]entry{symlink("d", "/x/y"), file("d/z", "w")}, "d->/x/y x/ x/y/ x/y/z=w"},
		"chain of symlinks":        {[]entry{symlink("a", "/b"), symlink("b", "../c"), dir("c"), file("a/z", "w")}, "a->/b b->../c c/ c/z=w"},
		"symlink as the last part": {[]entry{symlink("f", "../secret"), file("f", "x")}, "f=x"},
		"whiteout of dot dot path": {[]entry{file("x", "y"), whiteout("../../.wh.secret")}, "x=y"},
		"opaque of dot dot path":   {[]entry{whiteout("../../.wh..wh..opq")}, ""},
		"opaque through symlink":   {[]entry{symlink("up", "../.."), whiteout("up/.wh..wh..opq")}, "up->../.."},
		"directory over symlink":   {[]entry{symlink("d", ".."), dir("d"), file("d/secret", "x")}, "d/ d/secret=x"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := unpackAll(t, pack(t, c.layer...))
			if name == "absolute symlink" { // a loop once "/" is the root
				if err == nil || !strings.Contains(err.Error(), "too many symlinks") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := listTree(t, root); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	var loops []entry
	for i := range 50 {
		loops = append(loops, symlink(fmt.Sprintf("l%d", i), fmt.Sprintf("l%d", i+1)))
	}
	var flood []entry
	for i := range 1001 {
		flood = append(flood, file(fmt.Sprint(i), ""))
	}
	for name, c := range map[string]struct {
		layer []entry
		want  string
	}{
		"hard link to the host":            {[]entry{hardlink("h", "../secret")}, "no such file"},
		"hard link through a symlink out":  {[]entry{symlink("up", ".."), hardlink("h", "up/secret")}, "no such file"},
		"hard link to an absolute path":    {[]entry{hardlink("h", "/etc/passwd")}, "hard link to"},
		"hard link to a directory":         {[]entry{dir("d"), hardlink("h", "d")}, "to the directory"},
		"hard link to itself":              {[]entry{file("f", "x"), hardlink("f", "f")}, "to itself"},
		"hard link to nothing":             {[]entry{hardlink("h", "x/y")}, "hard link to \"x/y\""},
		"hard link to the root":            {[]entry{hardlink("h", "/")}, "to the directory"},
		"symlink loop":                     {[]entry{symlink("a", "b"), symlink("b", "a"), file("a/x", "y")}, "too many symlinks"},
		"endless symlinks":                 {append(loops, file("l0/x", "y")), "too many symlinks"},
		"file as a directory":              {[]entry{file("f", "x"), file("f/y", "z")}, "is a file"},
		"no name":                          {[]entry{special("", tar.TypeFifo)}, "the name is empty"},
		"hard link to no name":             {[]entry{hardlink("h", "")}, "the name is empty"},
		"directory replaced by a loop":     {[]entry{dir("a"), dir("a/b"), symlink("a", "a")}, "too many symlinks"},
		"root as a symlink":                {[]entry{symlink("/", "x")}, "only a directory"},
		"too many entries":                 {flood, "limit of 1000"},
		"too long a path":                  {[]entry{file(strings.Repeat("a/", 2100)+"b", "")}, "limit of 4095"},
		"too long a link":                  {[]entry{symlink("l", strings.Repeat("a/", 2100))}, "limit of 4095"},
		"too long a name":                  {[]entry{file(strings.Repeat("a", 300), "")}, "more than the limit of 255"},
		"hard link to too long a name":     {[]entry{hardlink("h", strings.Repeat("a", 300))}, "more than the limit of 255"},
		"whiteout of too long a name":      {[]entry{whiteout(".wh." + strings.Repeat("a", 300))}, "more than the limit of 255"},
		"directory with too long a name":   {[]entry{file(strings.Repeat("a", 300)+"/b", "")}, "more than the limit of 255"},
		"too many bytes in one file":       {[]entry{file("big", strings.Repeat("x", 1<<20+1))}, "limit of 1048576 bytes"},
		"too many bytes in several files":  {[]entry{file("1", strings.Repeat("x", 600_000)), file("2", strings.Repeat("x", 600_000))}, "limit of 1048576 bytes"},
		"error that quotes a hostile name": {[]entry{file("a\x1b[31m\n"+strings.Repeat("b", 300), "")}, `"a\x1b[31m\n`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackAll(t, pack(t, c.layer...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestUnpackRefusesOddWhiteouts(t *testing.T) {
	for _, name := range []string{".wh.", ".wh..", ".wh...", "a/.wh.", "a/.wh..", "a/.wh..."} {
		if _, err := unpackAll(t, pack(t, dir("a"), file("a/x", "y")), pack(t, whiteout(name))); err == nil || !strings.Contains(err.Error(), "whiteout of") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestUnpackRefusesTruncatedAndForeignTars(t *testing.T) {
	whole := pack(t, file("a", strings.Repeat("x", 5000)))
	for name, c := range map[string]struct {
		layer []byte
		want  string
	}{
		"in a header": {whole[:100], "reading tar: unexpected EOF"},
		"in a file":   {whole[:3000], `unpacking "a": unexpected EOF`},
		"text":        {bytes.Repeat([]byte("no tar "), 500), "reading tar: archive/tar: invalid tar header"},
	} {
		if _, err := unpackAll(t, c.layer); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestUnpackRefusesEndlessPadding(t *testing.T) {
	endless := append(pack(t, file("a", "b")), make([]byte, 8<<20)...)
	if _, err := unpackAll(t, endless); err == nil || !strings.Contains(err.Error(), "limits") {
		t.Errorf("got %v", err)
	}
}

func TestUnpackReadsToTheEnd(t *testing.T) {
	// The digest is checked at the end of the stream, which is after the end of
	// the tar.
	bad := errors.New("digest is wrong")
	r := &endReader{bytes.NewReader(pack(t, file("a", "b"))), bad}
	if _, err := unpack.Extract(t.TempDir(), r, unpack.NewBudget(1<<20, 10)); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

type endReader struct {
	*bytes.Reader
	err error
}

func (e *endReader) Read(p []byte) (int, error) {
	if e.Len() == 0 {
		return 0, e.err
	}
	return e.Reader.Read(p)
}

func TestUnpackModesAndTimes(t *testing.T) {
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	with := func(e entry, mode int64) entry {
		e.Mode, e.ModTime = mode, when
		return e
	}
	root, err := unpackAll(t, pack(t,
		with(dir("closed"), 0o000),
		with(file("closed/in", "x"), 0o640),
		with(dir("ro"), 0o555),
		with(file("ro/in", "x"), 0o444),
		with(dir("sticky"), 0o1777),
		with(dir("gid"), 0o2755),
		with(file("suid", "x"), 0o4755),
		with(file("sgid", "x"), 0o2711),
		with(file("none", "x"), 0o000),
		with(dir("private"), 0o700),
		with(file("private/secret", "x"), 0o600),
		with(file("private/tool", "x"), 0o750),
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"closed":    fs.ModeDir | 0o505,
		"closed/in": 0o644,
		"ro":        fs.ModeDir | 0o555,
		"ro/in":     0o444,
		"sticky":    fs.ModeDir | fs.ModeSticky | 0o777,
		"gid":       fs.ModeDir | 0o755,
		"suid":      0o755,
		"sgid":      0o715,
		"none":      0,
		// What its owner may read or enter, others may.
		"private":        fs.ModeDir | 0o705,
		"private/secret": 0o604,
		"private/tool":   0o755,
	} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
		if !info.ModTime().Equal(when) {
			t.Errorf("%s is of %s, want %s", name, info.ModTime(), when)
		}
	}
}

func TestADirectoryMadeAgainLosesItsMode(t *testing.T) {
	below := pack(t, withMode(dir("d"), 0o700), withMode(dir("d/e"), 0o700), withMode(dir("d/e/f"), 0o700))
	root, err := unpackAll(t, below, pack(t, whiteout(".wh.d"), file("d/e/f/x", "")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "d/e", "d/e/f"} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode() != fs.ModeDir|0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestUnpackKeepsHardLinks(t *testing.T) {
	root, err := unpackAll(t, pack(t, file("a", "x")), pack(t, hardlink("b", "a")))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := os.Stat(filepath.Join(root, "a"))
	if b, err := os.Stat(filepath.Join(root, "b")); err != nil || !os.SameFile(a, b) {
		t.Errorf("a and b are two files: %v", err)
	}
}

func TestUnpackSkipsDevicesAndIgnoresOwners(t *testing.T) {
	owned := file("owned", "x")
	owned.Uid, owned.Gid = 4242, 4242
	owned.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "all of them"}
	root, err := unpackAll(t, pack(t, owned,
		entry{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		entry{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8},
		entry{Name: "pipe", Typeflag: tar.TypeFifo},
		entry{Name: "note", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
	))
	if err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, root); got != "owned=x" {
		t.Errorf("got %s", got)
	}
}

func TestUnpackNames(t *testing.T) {
	long := strings.Repeat("long/", 40) + "name"
	gnu := file(long, "gnu")
	gnu.Format = tar.FormatGNU
	pax := file(long+"2", "pax")
	pax.Format = tar.FormatPAX
	bytesName := file("latin-\xe9", "x") // not UTF-8
	bytesName.Format = tar.FormatGNU
	root, err := unpackAll(t, pack(t, gnu, pax, bytesName, file("späße", "y"), dir("d-\xe9"), file("d-\xe9/x", "")), pack(t, whiteout("d-\xe9/.wh..wh..opq")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{long: "gnu", long + "2": "pax", "latin-\xe9": "x", "späße": "y"} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "d-\xe9/x")); err == nil {
		t.Error("the opaque directory still has a file of the layer below")
	}
}

func TestUnpackTimesOutOfRange(t *testing.T) {
	old, far := file("old", "x"), file("far", "x")
	old.ModTime, far.ModTime = time.Unix(-1<<40, 0), time.Unix(1<<50, 0)
	old.Format, far.Format = tar.FormatPAX, tar.FormatPAX
	root, err := unpackAll(t, pack(t, old, far))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"old": 0, "far": 1<<32 - 1} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.ModTime().Unix() != want {
			t.Errorf("%s: %v, %v", name, info.ModTime(), err)
		}
	}
}

// TestMoreLinksThanAFileSystemHas: ext4 has 65,000 for a file. Copies count as
// bytes.
//
//test:long
func TestMoreLinksThanAFileSystemHas(t *testing.T) {
	const links = 66_000
	layer := []entry{file("f", "content"), dir("d")}
	for n := range links {
		layer = append(layer, hardlink(fmt.Sprintf("d/%d", n), "f"))
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	b := unpack.NewBudget(1<<30, 2*links)
	if err := unpacktest.Unpack(t, unpack.NewMerger(root, b), b, bytes.NewReader(pack(t, layer...))); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 64_997, 64_998, 65_000, links - 1} {
		if got, err := root.ReadFile(fmt.Sprintf("d/%d", n)); err != nil || string(got) != "content" {
			t.Errorf("%d: %q, %v", n, got, err)
		}
	}
}
