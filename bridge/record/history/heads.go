package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/bridge/record"
)

// A Head is what a file was at some time: how many lines it had, and the hash of the last. Whoever
// keeps heads elsewhere notices later if anything before them was changed.
type Head struct {
	Name  string `json:"name"` // with the folder of its day
	Lines int    `json:"lines"`
	Hash  string `json:"sha256"`
}

// String returns the head as a line of a file of heads.
func (h Head) String() string { return fmt.Sprintf("%s %d %s", h.Hash, h.Lines, h.Name) }

// Heads returns the heads of all files of entries, the oldest first.
func (r *Record) Heads() (heads []Head, err error) {
	days, err := r.days()
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		names, err := r.files(day)
		if err != nil {
			return nil, err
		}
		for _, name := range append(names, day+"/"+record.IndexName) {
			h, err := r.head(name)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
			if h.Lines > 0 {
				heads = append(heads, h)
			}
		}
	}
	return heads, nil
}

func (r *Record) head(name string) (Head, error) {
	f, err := r.open(name)
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	h := Head{Name: name}
	for lines := record.NewLines(f); ; {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) || err == nil && line.Rest:
			return h, nil
		case err != nil:
			return Head{}, err
		}
		h.Lines, h.Hash = line.Number, record.HashOf(line.Text).String()
	}
}

// maxHeads bounds a file of heads.
const maxHeads = 1 << 20

// ReadHeads reads a file of heads: lines as String writes them, also those of several times, and
// empty lines.
func ReadHeads(in io.Reader) (heads []Head, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		h := Head{}
		if len(fields) == 3 {
			h.Hash, h.Name = fields[0], fields[2]
			h.Lines, err = strconv.Atoi(fields[1])
		}
		switch {
		case err != nil || h.Lines < 1 || len(h.Hash) != 64:
			return nil, fmt.Errorf("line %d: want a hash, a number of lines and the name of a file", n)
		case len(heads) == maxHeads:
			return nil, fmt.Errorf("line %d: these are over %d heads", n, maxHeads)
		}
		heads = append(heads, h)
	}
	return heads, lines.Err()
}

// compareHeads compares the line that was read last with the heads that end in it.
func (v *verifier) compareHeads(c *chain) {
	if len(v.heads[c.name]) == 0 {
		return
	}
	v.heads[c.name] = slices.DeleteFunc(v.heads[c.name], func(h Head) bool {
		// A head is of all lines before, whose hashes are in those that follow them.
		if h.Lines == c.line && (h.Hash != c.prev || v.problems[c.name] > 0) {
			v.report.HeadsDiffer++
		}
		if h.Lines == c.line && h.Hash != c.prev {
			v.problem(c.name, c.line, "the line, or one before it, was changed: the heads have another hash of it")
		}
		return h.Lines == c.line
	})
}

// cutHeads looks for heads of lines that a file does not have.
func (v *verifier) cutHeads(c *chain) {
	for _, h := range v.heads[c.name] {
		v.report.HeadsDiffer++
		v.problem(c.name, 0, "lines are missing: it has %d, and the heads %d", c.line, h.Lines)
	}
	delete(v.heads, c.name)
}

// endHeads looks for heads of files that are not there.
func (v *verifier) endHeads() {
	for _, name := range slices.Sorted(maps.Keys(v.heads)) {
		if day, _, _ := strings.Cut(name, "/"); !v.removed[day] {
			v.report.HeadsDiffer += len(v.heads[name])
			v.problem(name, 0, "it is missing: the heads have it")
		}
	}
}
