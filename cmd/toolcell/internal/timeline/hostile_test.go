package timeline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// filled is a run in which each string, text and list is what, and which is not bounded: another
// program may have written to the record.
func filled(what string) *Timeline {
	var entries []history.Entry
	for i, e := range []record.Entry{
		new(record.RunStart), new(record.RunReady), new(record.Verdict), new(record.Ask), new(record.Ask), new(record.CallStart), new(record.CallEnd), new(record.Egress),
		new(record.File), new(record.Limit), new(record.Pin), new(record.Torn), new(record.RunEnd), new(record.RunCost), nil,
	} {
		entry := history.Entry{Kind: record.Kind(what), Run: what, Time: time.Unix(int64(i), 0), File: what, Body: e, Values: map[string]*history.Value{}}
		if e != nil {
			fill(reflect.ValueOf(e).Elem(), what)
			for field := range record.Texts(e) {
				entry.Values[field] = &history.Value{Value: record.Value{Value: what, Tail: what}}
			}
		}
		if ask, ok := e.(*record.Ask); ok && i == 3 {
			ask.State = asked
		}
		entries = append(entries, entry)
	}
	run := history.Run{ID: what, Start: time.Unix(0, 0), Status: what, Command: what, User: what, Host: what, Session: what, Parent: what}
	run.Client.Name, run.Client.Version = what, what
	return New(run, entries)
}

func fill(v reflect.Value, what string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(what)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), what)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), what)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), what)
			}
		}
	}
}

// TestATerminalObeysNothing of what others wrote, and none of it looks like a line of ours. A text
// keeps its lines behind a mark, all else is on the line on which it is named.
func TestATerminalObeysNothing(t *testing.T) {
	ours := strings.Split(printed(t, filled("x"), Options{}), "\n")
	const forged = "\nWHAT IT DID\n  +0.001s  #1   bank.pay  reads   ok\n"
	for name, evil := range map[string]string{
		"ANSI":           "\x1b[2J\x1b]0;owned\x07\x1b[8m",
		"C1":             "\u009b2J\u0090q\u009c",
		"bytes":          "\x9b2J\xff\xfe",
		"carriage":       "good\rbad\b\b\bx",
		"bidi":           "\u202etxet\u2066\u2069\u200f",
		"hidden":         "a\u200b\u00ad\ufeff\U000E0041b",
		"lines":          forged,
		"other lines":    strings.ReplaceAll(forged, "\n", "\r\n") + strings.ReplaceAll(forged, "\n", "\v\f"),
		"line separator": strings.ReplaceAll(forged, "\n", "\u2028") + strings.ReplaceAll(forged, "\n", "\u0085"),
	} {
		for _, o := range []Options{{}, {Whole: true}, {Hide: func(string) bool { return true }}} {
			out := printed(t, filled(evil), o)
			if at := strings.IndexFunc(out, func(c rune) bool {
				return unicode.IsControl(c) && c != '\n' || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029'
			}); at >= 0 {
				t.Errorf("%s: %q", name, out[max(0, at-60):min(len(out), at+60)])
			}
			for line := range strings.SplitSeq(out, "\n") {
				if line == "WHAT IT DID" || strings.HasPrefix(line, "  +0.001s") {
					if !slices.Contains(ours, line) || strings.Count("\n"+out, "\n"+line+"\n") > 1 {
						t.Errorf("%s: a line looks like ours: %q", name, line)
					}
				}
			}
		}
	}
}

// TestLongLinesAreShortened to what a person reads at once, unless all is wanted. Wide characters count
// as what they take.
func TestLongLinesAreShortened(t *testing.T) {
	for name, long := range map[string]string{
		"letters": strings.Repeat("x", 1<<20), "words": strings.Repeat("word ", 1<<18), "wide": strings.Repeat("日", 1<<18), "lines": strings.Repeat("{\n", 1<<19),
	} {
		entries := []history.Entry{}
		for _, e := range []record.Entry{
			&record.CallStart{Call: 1, Server: "bank", Tool: long, Arguments: record.Text{Size: int64(len(long)), Kept: len(long)}, Writes: true},
			&record.CallEnd{Call: 1, Server: "bank", Tool: long, Outcome: record.ToolError, Error: record.Text{Size: 1, Kept: 1}, Answer: record.Text{Size: 1, Kept: 1}},
			&record.RunEnd{Error: record.Text{Size: 1, Kept: 1}, Traceback: record.Text{Size: 1, Kept: 1}},
		} {
			entry := history.Entry{Body: e, Values: map[string]*history.Value{}}
			for field := range record.Texts(e) {
				entry.Values[field] = &history.Value{Value: record.Value{Value: long}}
			}
			entries = append(entries, entry)
		}
		before, _, _ := strings.Cut(printed(t, New(history.Run{}, entries), Options{}), "\nTRACEBACK")
		for line := range strings.SplitSeq(before, "\n") {
			if n := uniseg.StringWidth(line); n > fileWidth+20 {
				t.Errorf("%s: a line of %d columns: %.100s", name, n, line)
			}
		}
		if strings.Count(before, "…") < 4 { // the name, arguments, error and answer
			t.Errorf("%s: it does not say that it is shortened:\n%.2000s", name, before)
		}
	}
}

// TestTenThousandCalls are summed up where they only read. Each that may have changed something is
// there.
func TestTenThousandCalls(t *testing.T) {
	const n = 10_000
	entries := []record.Entry{record.RunStart{Code: record.TextOf("await gather(…)\npay()"), Policy: "ab"}}
	var ends []record.Entry
	for i := range n { // all are under way before one ends
		some := call(i+1, 1, "look", false)
		if i%1000 == 999 {
			some = call(i+1, 2, "pay", true)
		}
		entries, ends = append(entries, some[0]), append(ends, some[1])
	}
	slices.Reverse(ends)
	timeline := recorded(t, record.Options{}, slices.Concat(entries, ends)...)
	out := printed(t, timeline, Options{})
	contain(t, out, "did       10000 calls, 10 may have changed something\n", "  #1-999,1001-1999,…9001-9999    1  await gather(…)\n", "#1000,2000,…10000*    2  pay()\n",
		"996 more calls like this, #4-999: ok, answered 1.9 KiB; --values shows them\n", "996 more calls like this, #9004-9999: ok,", "#10000 bank.pay   writes  ok")
	if lines := strings.Count(out, "\n"); lines > 200 {
		t.Errorf("%d lines", lines)
	}
	whole := printed(t, timeline, Options{Whole: true})
	for _, i := range []int{1, 500, n} {
		contain(t, whole, fmt.Sprintf(`{"n":%d}`, i)+"\n")
	}
	if calls := strings.Count(whole, " bank.look ") + strings.Count(whole, " bank.pay "); calls != n {
		t.Errorf("all of it has %d calls", calls)
	}
}
