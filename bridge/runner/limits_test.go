package runner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestLengthsOfFramesAreBounded: a frame takes its room before it is read.
func TestLengthsOfFramesAreBounded(t *testing.T) {
	for size, fits := range map[uint32]bool{0: true, maxFrame: true, maxFrame + 1: false, 1<<32 - 1: false} {
		var head [4]byte
		binary.BigEndian.PutUint32(head[:], size)
		if n, err := frameSize(head); fits && (err != nil || n != int(size)) || !fits && !errors.Is(err, ErrProtocol) {
			t.Errorf("%d bytes: %d, %v", size, n, err)
		}
	}
}

// TestNamesThatARunDefinesAreBounded, since a forged runner keeps to nothing.
func TestNamesThatARunDefinesAreBounded(t *testing.T) {
	names := []string{strings.Repeat("x", maxName), strings.Repeat("y", maxName+1)}
	for i := range maxNames {
		names = append(names, fmt.Sprint("n", i))
	}
	raw, err := json.Marshal(strings.Join(names, " "))
	if err != nil {
		t.Fatal(err)
	}
	r := exchange{Conn: &Conn{}, dump: newStackDump(), done: &frame{Names: raw}}
	want := slices.Concat(names[:1], names[2:maxNames+1])
	if got := r.result(true).Names; !slices.Equal(got, want) {
		t.Errorf("%d names: %.300q", len(got), got)
	}
}

// TestForgedStacksAreRefused as they come.
func TestForgedStacksAreRefused(t *testing.T) {
	frames := func(n int) string { return "[" + strings.Repeat(`{"line":1},`, n-1) + `{"line":1}]` }
	padded := func(size int) string { return `[{"file":"` + strings.Repeat("x", size-13) + `"}]` }
	for name, c := range map[string]struct {
		raw   string
		taken bool
	}{
		"as many frames as there may be": {frames(maxDumpFrames), true},
		"one more":                       {frames(maxDumpFrames + 1), false},
		"as long as it may be":           {padded(maxDumpFrame), true},
		"longer":                         {padded(maxDumpFrame + 1), false},
		"no list":                        {`{"line":1}`, false},
		"none":                           {`null`, true},
	} {
		if err := newStackDump().addFrames(json.RawMessage(c.raw)); (err == nil) != c.taken {
			t.Errorf("%s (%d bytes): %v", name, len(c.raw), err)
		}
	}
}

// TestFrameBehindTheTextOfAStackIsFound: faulthandler's text has no length in front.
func TestFrameBehindTheTextOfAStackIsFound(t *testing.T) {
	d := newStackDump()
	const text = "Current thread 0x1 (most recent call first):\n  File \"<run_python>\", line 7 in f\n"
	head, err := d.readText(strings.NewReader(text[4:]+"\x00\x00\x01\x02rest"), [4]byte([]byte(text)))
	if err != nil || head != [4]byte{0, 0, 1, 2} {
		t.Errorf("its head is %v, %v", head, err)
	}
	if got := d.lines("", "<run_python>", ""); !slices.Equal(got, []string{"line 7, in f"}) {
		t.Errorf("the stack is %q", got)
	}
	if _, err := d.readText(strings.NewReader(strings.Repeat("x", maxDumpText)), [4]byte{'T'}); !errors.Is(err, ErrProtocol) {
		t.Errorf("text without end: %v", err)
	}
}

// TestTheMiddleOfADeepStackIsLeftOut.
func TestTheMiddleOfADeepStackIsLeftOut(t *testing.T) {
	stack := func(n int) (all []stackFrame) {
		for i := range n {
			all = append(all, stackFrame{File: "<run_python>", Line: i + 1, Func: "f"})
		}
		return all
	}
	if got := stackLines(stack(maxShownLines), "", "<run_python>"); len(got) != maxShownLines || slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "left out") }) {
		t.Errorf("as many as are shown: %q", got)
	}
	got := stackLines(stack(1000), "", "<run_python>")
	if len(got) != maxShownLines+1 || !strings.HasPrefix(got[0], "line 1,") || got[6] != "[988 lines left out]" || !strings.HasPrefix(got[12], "line 1000,") {
		t.Errorf("1000: %q", got)
	}
}
