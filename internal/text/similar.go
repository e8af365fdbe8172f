package text

import (
	"slices"
	"strings"
)

// maxNames bounds the names that are compared with one, in compared bytes.
const maxNames = 256 << 10

// Nearest returns the n names most like want, most like first. Of very many names it looks
// at the first.
func Nearest(want string, names []string, n int) []string {
	type scored struct {
		name     string
		distance int
	}
	want = fold(want)
	best := make([]scored, 0, n+1)
	left := maxNames
	for _, name := range names {
		low := fold(name)
		if left -= len(low); left < 0 {
			break
		}
		d := 2 * EditDistance(want, low)
		if contains(low, want) || contains(want, low) {
			d /= 4 // "issue" means "create_issue" more than it means "tissue"
		}
		at := len(best)
		for at > 0 && best[at-1].distance > d {
			at--
		}
		best = slices.Insert(best, at, scored{name, d})
		best = best[:min(n, len(best))]
	}
	var nearest []string
	for _, s := range best {
		nearest = append(nearest, s.name)
	}
	return nearest
}

// Meant returns the name that want probably stands for: it is part of it, or at most one
// letter in so many is wrong. Without one it returns "".
func Meant(want string, names []string, letters int) string {
	for _, near := range Nearest(want, names, 3) {
		a, b := fold(want), fold(near)
		if contains(a, b) || contains(b, a) || misspelled(a, b, letters) {
			return near
		}
	}
	return ""
}

// Misspelled returns the name that want misspells: at most one letter in three is wrong. If
// there is no such name, it returns "".
func Misspelled(want string, names []string) string {
	for _, near := range Nearest(want, names, 3) {
		if misspelled(fold(want), fold(near), 3) {
			return near
		}
	}
	return ""
}

func misspelled(a, b string, letters int) bool {
	return EditDistance(a, b) <= max(len(a), len(b))/letters
}

// contains reports whether part is in whole and says something: a letter or two are in
// many names.
func contains(whole, part string) bool { return len(part) > 2 && strings.Contains(whole, part) }

// maxCompared is how many bytes of a name are compared, as the time for it grows with
// the square.
const maxCompared = 64

// fold returns what of a name is compared.
func fold(name string) string {
	name = strings.ToLower(name[:min(len(name), maxCompared)])
	return name[:min(len(name), maxCompared)]
}

// EditDistance is the Levenshtein distance in bytes, where two neighbors that changed
// places count as one edit (optimal string alignment): "lsit" is one from "list".
func EditDistance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(above[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], above[j])
			} else {
				row[j+1] = min(row[j+1], above[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
