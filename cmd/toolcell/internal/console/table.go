package console

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"
)

// A Column of a table says how its cells are set.
type Column struct {
	Name  string
	Right bool // numbers stand below each other
	End   bool // if it does not fit, the end is shown: it distinguishes paths
	Wrap  bool // text that does not fit continues below; for the last column only
	Keep  bool // it is never cut, also where the table gets too wide: IDs to type
	Least int  // columns that it has while others can shrink
	Color func(string) string
}

const (
	gap      = "  "
	wrapFrom = 24 // columns narrower than this are cut, not wrapped
)

// PrintTable prints rows of cells below a head. On a terminal it keeps to the
// width: cells that do not fit are cut, which a … shows. Elsewhere all is shown,
// a line for each row.
func PrintTable(out *os.File, columns []Column, rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = Plain(row[i])
		}
	}
	widths := fit(columns, rows, terminalWidth(out))
	var b strings.Builder
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.Name
	}
	color := ColorsFor(out)
	writeRow(&b, columns, widths, head, color.Bold)
	for _, row := range rows {
		writeRow(&b, columns, widths, row, nil)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// terminalWidth returns the number of columns if a file is a terminal, else 0.
func terminalWidth(f *os.File) int {
	if !Terminal(f) {
		return 0
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 80
}

// TextWidth returns how wide lines of text for a file may be, in columns: as wide as the
// terminal, or 80.
func TextWidth(f *os.File) int {
	return cmp.Or(terminalWidth(f), 80)
}

// fit returns the width of each column. If the table is wider than limit, the widest columns
// shrink, down to their Least, and then to one width for all. A limit of 0 is none.
func fit(columns []Column, rows [][]string, limit int) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = uniseg.StringWidth(c.Name)
		for _, row := range rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
	}
	room := limit - len(gap)*(len(columns)-1)
	for limit > 0 && sum(widths) > room {
		at := widest(columns, widths, true)
		if at < 0 {
			at = widest(columns, widths, false)
		}
		if at < 0 {
			break // narrower than any table
		}
		widths[at]--
	}
	return widths
}

// widest returns the widest column that can shrink, the last of several, or -1. It may be asked to leave
// each column its Least.
func widest(columns []Column, widths []int, least bool) int {
	at := -1
	for i, w := range widths {
		floor := 1
		if least {
			floor = max(1, columns[i].Least)
		}
		if w > floor && !columns[i].Keep && (at < 0 || w >= widths[at]) {
			at = i
		}
	}
	return at
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// writeRow writes the lines of one row. Color is for all cells, if not nil.
func writeRow(b *strings.Builder, columns []Column, widths []int, row []string, color func(string) string) {
	var line strings.Builder
	var below []string // the remaining lines of the last cell
	last := len(columns) - 1
	for i, c := range columns {
		cell := row[i]
		switch {
		case uniseg.StringWidth(cell) <= widths[i]:
		case i == last && c.Wrap && widths[i] >= wrapFrom:
			lines := Wrapped(cell, widths[i])
			cell, below = lines[0], lines[1:]
		case c.End:
			cell = cutStart(cell, widths[i])
		default:
			cell = cut(cell, widths[i])
		}
		pad := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell))
		if paint := c.Color; color != nil {
			cell = color(cell)
		} else if paint != nil {
			cell = paint(cell)
		}
		switch {
		case c.Right:
			cell = pad + cell
		case i < last:
			cell += pad
		}
		if i > 0 {
			line.WriteString(gap)
		}
		line.WriteString(cell)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	for _, line := range below {
		b.WriteString(strings.Repeat(" ", sum(widths[:last])+len(gap)*last) + line + "\n")
	}
}

// cut returns the beginning of s, at most n columns wide, with a … if it is
// cut.
func cut(s string, n int) string {
	if uniseg.StringWidth(s) <= n {
		return s
	}
	var b strings.Builder
	for room := n - 1; ; { // of the …
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
		if width > room {
			return b.String() + "…"
		}
		b.WriteString(cluster)
		s, room = rest, room-width
	}
}

// cutStart returns the end of s in the same way.
func cutStart(s string, n int) string {
	for uniseg.StringWidth(s) > n-1 {
		_, s, _, _ = uniseg.FirstGraphemeClusterInString(s, -1)
	}
	return "…" + s
}

// Wrapped breaks s into lines of at most n columns, between words where it can.
func Wrapped(s string, n int) (lines []string) {
	for word := range strings.FieldsSeq(s) {
		if last := len(lines) - 1; last >= 0 && uniseg.StringWidth(lines[last]+" "+word) <= n {
			lines[last] += " " + word
			continue
		}
		for uniseg.StringWidth(word) > n {
			part := strings.TrimSuffix(cut(word, n), "…")
			lines, word = append(lines, part), word[len(part):]
		}
		lines = append(lines, word)
	}
	return lines
}

// Plain makes one line of text that others wrote, without what a terminal would
// obey: control characters, and those that turn the direction of writing.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		const joiner = '\u200d' // holds emoji together
		switch {
		case r == '\n' || r == '\r' || r == '\t' || unicode.In(r, unicode.Zl, unicode.Zp): // some programs break lines there
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != joiner:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// PlainText is plain for text of several lines.
func PlainText(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Plain(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// Shown returns untrusted text of several lines in the form that is safe for f: PlainText for
// a terminal, unchanged elsewhere.
func Shown(f *os.File, s string) string {
	if Terminal(f) {
		return PlainText(s)
	}
	return s
}

// OneLine cuts text to n columns, on one line.
func OneLine(s string, n int) string {
	return cut(strings.Join(strings.Fields(Plain(s)), " "), n)
}
