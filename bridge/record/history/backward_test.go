package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// linesOf returns the lines of a file in their order, read from its end.
func linesOf(t *testing.T, path string) (all []string, skipped int) {
	t.Helper()
	b, err := openBackward(path)
	must(t, err)
	defer b.close()
	for {
		line, err := b.next()
		if errors.Is(err, io.EOF) {
			slices.Reverse(all)
			return all, b.skipped
		}
		must(t, err)
		all = append(all, string(line))
	}
}

func TestBackward(t *testing.T) {
	long := strings.Repeat("a", record.MaxLine)
	for _, text := range []string{
		"", "\n", "a", "a\n", "a\nb", "a\n\n\nb\n", "\na",
		strings.Repeat("x", chunk-1) + "\nb\n", strings.Repeat("x", chunk) + "\nb\n", "a\n" + strings.Repeat("x", chunk-1) + "\n", "a\n" + strings.Repeat("x", chunk),
		strings.Repeat(strings.Repeat("y", 1000)+"\n", 2000),
		"a\n" + long + "\nb\n",
	} {
		path := filepath.Join(t.TempDir(), "f")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		want := slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return s == "" })
		if got, skipped := linesOf(t, path); !slices.Equal(got, want) || skipped != 0 {
			t.Errorf("%.20q… of %d bytes: %d lines, want %d", text, len(text), len(got), len(want))
		}
		if got := greppedLines(t, path, ""); !slices.Equal(got, want) {
			t.Errorf("%.20q… of %d bytes: %d lines forwards, want %d", text, len(text), len(got), len(want))
		}
	}
}

func TestLongLinesAreSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, over := range []int{1, chunk, 5 * record.MaxLine} {
		long := strings.Repeat("a", record.MaxLine+over)
		must(t, os.WriteFile(path, []byte("a\n"+long+"\nb\n"+long), 0o600))
		if got, skipped := linesOf(t, path); !slices.Equal(got, []string{"a", "b"}) || skipped != 2 {
			t.Errorf("%d over: %d lines, %d skipped", over, len(got), skipped)
		}
		for _, line := range greppedLines(t, path, "b") {
			if line != "b" {
				t.Errorf("%d over: a line of %d bytes", over, len(line))
			}
		}
	}
}

func greppedLines(t *testing.T, path, text string) (all []string) {
	t.Helper()
	must(t, grep(path, []byte(text), func(line []byte) bool {
		if len(line) > 0 {
			all = append(all, string(line))
		}
		return true
	}))
	return all
}

func FuzzReader(f *testing.F) {
	r, name := writeRecord(f)
	data, err := os.ReadFile(r.path(name))
	must(f, err)
	f.Add(data)
	f.Add(append(bytes.Clone(data[:len(data)-100]), "\n\x00\n"...))
	f.Add([]byte(`{"v":1,"seq":1,"prev":"` + strings.Repeat("0", 64) + `","time":"2026-11-28T12:00:00.000000000Z","kind":"run.start","run":"a"`))
	f.Add([]byte(`{"v":1,"seq":18446744073709551616,"prev":"","time":"","kind":"call.end","run":"a\u0000","server":"\`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := Open(t.TempDir())
		must(t, os.Mkdir(filepath.Join(r.dir, "2026-11-28"), 0o700))
		for _, name := range []string{"vm-1-1.jsonl", "vm-1-1.values.jsonl", "vm-exec.jsonl", record.IndexName} {
			must(t, os.WriteFile(filepath.Join(r.dir, "2026-11-28", name), data, 0o600))
		}
		for run, err := range r.Runs(Filter{}) {
			must(t, err)
			if _, err := r.Show(run.ID); err != nil && !errors.Is(err, ErrNoRun) && !isAmbiguous(err) {
				t.Error(err)
			}
		}
		for _, err := range r.Entries(Filter{}) {
			must(t, err)
		}
		_, err := r.Stats(Filter{})
		must(t, err)
		heads, err := r.Heads()
		must(t, err)
		report, err := r.Verify(heads)
		must(t, err)
		if s := fmt.Sprint(report.Problems); strings.Contains(s, "heads") {
			t.Error(s)
		}
	})
}

func isAmbiguous(err error) bool {
	var a *AmbiguousError
	return errors.As(err, &a)
}
