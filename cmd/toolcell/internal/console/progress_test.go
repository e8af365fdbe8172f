package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
	"github.com/toolcell/toolcell/rootfs"
)

// until reads from a terminal up to a text.
func until(t *testing.T, ours *os.File, text string) string {
	t.Helper()
	var all strings.Builder
	for b := make([]byte, 256); !strings.Contains(all.String(), text); {
		n, err := ours.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		all.Write(b[:n])
	}
	return all.String()
}

// TestProgressIsRedrawnAndErased: what comes after it stands where it was.
func TestProgressIsRedrawnAndErased(t *testing.T) {
	ours, theirs := terminaltest.Open(t, 40)
	defer ours.Close()
	defer theirs.Close()
	t.Setenv("TERM", "xterm")
	p := NewProgress(theirs, false)
	p.Show("one\x1b[2J of " + strings.Repeat("many ", 20))
	first := until(t, ours, "…")
	if strings.Contains(first, "\x1b[2J") || strings.Contains(first, "\n") || len(first) > 60 {
		t.Errorf("drew %q", first)
	}
	p.Show("two", "lines")
	if second := until(t, ours, "lines"); !strings.HasPrefix(second, "\r\x1b[Jtwo") {
		t.Errorf("drew %q", second)
	}
	p.Hide()
	if hidden := until(t, ours, "\x1b[J"); !strings.HasSuffix(hidden, "\r\x1b[1A\x1b[J") {
		t.Errorf("hid with %q", hidden)
	}
	p.Wrote([]byte("half a line"))
	p.Show("not while a line has begun")
	p.Close()
	if _, err := theirs.WriteString("after\n"); err != nil {
		t.Fatal(err)
	}
	if rest := until(t, ours, "\n"); rest != "after\r\n" {
		t.Errorf("then %q", rest)
	}
}

// TestProgressIsForTerminals: nothing is drawn elsewhere, or if it is to be quiet.
func TestProgressIsForTerminals(t *testing.T) {
	ours, theirs := terminaltest.Open(t, 40)
	defer ours.Close()
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Progress{NewProgress(theirs, true), NewProgress(file, false)} {
		if p.Drawn() {
			t.Error("it is drawn")
		}
		p.Show("never")
		p.draw()
		p.Close("never")
	}
	theirs.WriteString("end\n")
	if got := until(t, ours, "\n"); got != "end\r\n" {
		t.Errorf("the terminal got %q", got)
	}
	if got, _ := os.ReadFile(file.Name()); len(got) > 0 {
		t.Errorf("the file got %q", got)
	}
}

// TestBarsSayBytesAsPeopleDo: no "b", which are bits, and no MB beside MiB.
func TestBarsSayBytesAsPeopleDo(t *testing.T) {
	for want, l := range map[string]rootfs.LayerProgress{
		"0123456789ab [============            ]    1.5 MiB of      3 MiB  512 KiB/s": {Digest: "sha256:0123456789abcdef", Done: 3 << 19, Total: 3 << 20},
		"x [========================]  151 bytes of  151 bytes  done":                 {Digest: "x", Done: 151, Total: 151, Finished: true},
		"x [                        ]    0 bytes of      1 GiB  waiting":              {Digest: "x", Total: 1 << 30},
		"x [                        ]     20 MiB of    0 bytes  20 MiB/s":             {Digest: "x", Done: 20 << 20},
	} {
		took := time.Second
		if l.Total == 3<<20 {
			took = 3 * time.Second
		}
		if got := bar(l, took); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
