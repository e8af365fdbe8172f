package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	diffContext = 3
	maxDiff     = 1000 // lines that differ: the memory grows with the square
)

// diff shows how a text changes, line by line, in the unified form. It is
// empty if it does not.
func diff(file string, before, after []byte) string {
	if bytes.Equal(before, after) {
		return ""
	}
	edits := lineEdits(splitLines(before), splitLines(after))
	if edits == nil {
		return fmt.Sprintf("%s: more than %d lines change\n", file, maxDiff)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", file, file)
	last := -1
	for i, e := range edits {
		if !near(edits, i) {
			continue
		}
		if last != i-1 || last < 0 {
			fmt.Fprintf(&b, "@@ line %d @@\n", e.line)
		}
		fmt.Fprintf(&b, "%c%s\n", e.kind, e.text)
		last = i
	}
	return b.String()
}

// An edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	kind byte
	line int // in the old text
	text string
}

// near reports whether a line differs or is close to one that does.
func near(edits []edit, i int) bool {
	for j := max(0, i-diffContext); j <= min(len(edits)-1, i+diffContext); j++ {
		if edits[j].kind != ' ' {
			return true
		}
	}
	return false
}

func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// lineEdits is Myers' algorithm ("An O(ND) Difference Algorithm", 1986): the
// time grows with what differs and not with the text, which may be megabytes.
func lineEdits(a, b []string) []edit {
	ends := map[int]int{1: 0} // by diagonal, how far a was read
	var trace []map[int]int
	for d := 0; d <= min(maxDiff, len(a)+len(b)); d++ {
		before := make(map[int]int, 2*d+3)
		for k := -d - 1; k <= d+1; k++ {
			if x, ok := ends[k]; ok {
				before[k] = x
			}
		}
		trace = append(trace, before)
		for k := -d; k <= d; k += 2 {
			x := ends[k-1] + 1
			if k == -d || k != d && ends[k-1] < ends[k+1] {
				x = ends[k+1]
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			if ends[k] = x; x >= len(a) && y >= len(b) {
				return backtrack(a, b, trace)
			}
		}
	}
	return nil
}

// backtrack follows the way from the end to the beginning.
func backtrack(a, b []string, trace []map[int]int) []edit {
	var edits []edit
	x, y := len(a), len(b)
	for d, ends := range slices.Backward(trace) {
		k := x - y
		from := k - 1
		if k == -d || k != d && ends[k-1] < ends[k+1] {
			from = k + 1
		}
		px := ends[from]
		py := px - from
		for x > px && y > py && x > 0 && y > 0 {
			x, y = x-1, y-1
			edits = append(edits, edit{' ', x + 1, a[x]})
		}
		switch {
		case d == 0:
		case from == k+1:
			y--
			edits = append(edits, edit{'+', x + 1, b[y]})
		default:
			x--
			edits = append(edits, edit{'-', x + 1, a[x]})
		}
	}
	for i, j := 0, len(edits)-1; i < j; i, j = i+1, j-1 {
		edits[i], edits[j] = edits[j], edits[i]
	}
	return edits
}
