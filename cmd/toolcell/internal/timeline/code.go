package timeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
)

// code writes the code, with the numbers of the calls beside the lines that made them.
func (p *printer) code() {
	if p.Start == nil || p.Start.Code.Size == 0 {
		return
	}
	lines, elsewhere, note := p.codeLines()
	p.heading("CODE", note)
	wide := 0
	for _, line := range lines {
		wide = max(wide, uniseg.StringWidth(line.Margin))
	}
	for _, line := range lines {
		pad, number := strings.Repeat(" ", wide-uniseg.StringWidth(line.Margin)), "    "
		if line.Number > 0 {
			number = fmt.Sprintf("%4d", line.Number)
		}
		fmt.Fprintf(p, "  %s%s %s  %s\n", pad, p.colors.Yellow(line.Margin), number, line.Text)
	}
	if len(elsewhere) > 0 && len(lines) > 0 {
		fmt.Fprintf(p, "  %s, whose lines are not known or not here\n", margin(elsewhere))
	}
	if wide > 0 {
		fmt.Fprintf(p, "  # calls of this line; * may have changed something\n")
	}
}

// codeLines returns the lines of the code that are there, the calls of no such line, and what is not as
// it was.
func (p *printer) codeLines() (lines []CodeLine, elsewhere []*Call, note string) {
	s := p.shownText(&p.o, p.start, "code", &p.Start.Code)
	if s.none {
		return nil, p.Calls, s.note
	}
	at := p.callsByLine()
	for i, line := range visibleLines(s.value) {
		calls := at[i+1]
		slices.SortFunc(calls, func(a, b *Call) int { return a.Number - b.Number }) // some have overtaken others
		lines = append(lines, CodeLine{i + 1, line, calls, margin(calls)})
		delete(at, i+1)
	}
	if s.gap != "" { // what number a line after it has is not known
		rest := []string{s.gap}
		if s.tail != "" {
			rest = append(rest, visibleLines(s.tail)...)
		}
		for _, line := range rest {
			lines = append(lines, CodeLine{Text: line})
		}
	}
	for _, calls := range at {
		elsewhere = append(elsewhere, calls...)
	}
	slices.SortFunc(elsewhere, func(a, b *Call) int { return a.Number - b.Number })
	return lines, elsewhere, s.note
}

// visibleLines returns the lines of code, in which characters that are not seen are written as escapes:
// Python sees them.
func visibleLines(s string) []string {
	return plainLines(text.Visible(strings.ReplaceAll(s, "\r\n", "\n")))
}

// plainLines returns the lines of text that others wrote.
func plainLines(s string) []string {
	return strings.Split(strings.TrimSuffix(console.PlainText(s), "\n"), "\n")
}

// callsByLine returns the calls of each line of the code. Those of line 0 have none.
func (p *printer) callsByLine() map[int][]*Call {
	at := map[int][]*Call{}
	for _, c := range p.Calls {
		at[c.Line] = append(at[c.Line], c)
	}
	return at
}

// margin is what stands beside a line.
func margin(calls []*Call) string {
	if len(calls) == 0 {
		return ""
	}
	var all []int
	writes := ""
	for _, c := range calls {
		all = append(all, c.Number)
		if c.MayHaveChanged() {
			writes = "*"
		}
	}
	slices.Sort(all) // some have overtaken others
	return numbers(all) + writes
}
