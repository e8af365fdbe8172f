package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// verifiedByPython returns what docs/verify_record.py says is wrong with a record.
func verifiedByPython(t *testing.T, r *Record) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	out, err := exec.Command(python, "../../../docs/verify_record.py", r.dir).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%v: %s", err, out)
	}
	if whole := text == "The record is whole."; whole != (err == nil) {
		t.Fatalf("%v: %s", err, out)
	} else if whole {
		return nil
	}
	return strings.Split(text, "\n")
}

// samePython fails the test if the program in docs finds a fault where Verify finds none, or none
// where Verify does. It may name the file alone.
func samePython(t *testing.T, r *Record) {
	t.Helper()
	if testing.Short() {
		return // it starts Python each time
	}
	var ours []string
	for _, p := range verify(t, r).Problems {
		ours = append(ours, p.String())
	}
	theirs := verifiedByPython(t, r)
	same := func(their, our string) bool {
		where, _, _ := strings.Cut(their, ": ")
		return strings.HasPrefix(our, where+":")
	}
	for _, our := range ours {
		if !slices.ContainsFunc(theirs, func(their string) bool { return same(their, our) }) {
			t.Errorf("docs/verify_record.py does not find %s, but\n%s", our, strings.Join(theirs, "\n"))
		}
	}
	for _, their := range theirs {
		if !slices.ContainsFunc(ours, func(our string) bool { return same(their, our) }) {
			t.Errorf("docs/verify_record.py says %s, and Verify\n%s", their, strings.Join(ours, "\n"))
		}
	}
}

// TestPythonFindsTheSame in records in which any bit is changed, or that end anywhere.
func TestPythonFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python many times")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 30 {
		r, name := writeRecord(t)
		path := r.path([]string{name, record.ValuesName(name), listName(name)}[n%3])
		data, err := os.ReadFile(path)
		must(t, err)
		at := random.IntN(len(data))
		what := fmt.Sprintf("%s is cut to %d bytes", filepath.Base(path), at)
		if n%2 == 0 {
			bit := byte(1) << random.IntN(8)
			what = fmt.Sprintf("bit %d of byte %d of %s is changed, in %.60q", bit, at, filepath.Base(path), data[max(0, at-20):])
			data[at] ^= bit
		} else {
			data = data[:at]
		}
		must(t, os.WriteFile(path, data, 0o600))
		if samePython(t, r); t.Failed() {
			t.Fatal(what)
		}
	}
}
