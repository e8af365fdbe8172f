package timeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// code writes the code, with the numbers of the calls beside the lines that made them.
func (p *printer) code() {
	if p.Start == nil || p.Start.Code.Size == 0 {
		return
	}
	s := p.shownText(&p.o, p.start, "code", &p.Start.Code)
	p.heading("CODE", s.note)
	if s.none {
		return
	}
	at := p.callsByLine()
	lines := plainLines(s.value)
	margins := make([]string, len(lines))
	wide := 0
	for i := range margins {
		margins[i] = p.margin(at[i+1])
		wide = max(wide, uniseg.StringWidth(margins[i]))
		delete(at, i+1)
	}
	for i, line := range lines {
		pad := strings.Repeat(" ", wide-uniseg.StringWidth(margins[i]))
		fmt.Fprintf(p, "  %s%s %4d  %s\n", pad, p.colors.Yellow(margins[i]), i+1, line)
	}
	if s.gap != "" { // what number a line after it has is not known
		rest := []string{s.gap}
		if s.tail != "" {
			rest = append(rest, plainLines(s.tail)...)
		}
		for _, line := range rest {
			fmt.Fprintf(p, "  %s       %s\n", strings.Repeat(" ", wide), line)
		}
	}
	var elsewhere []*Call
	for _, calls := range at {
		elsewhere = append(elsewhere, calls...)
	}
	if len(elsewhere) > 0 {
		slices.SortFunc(elsewhere, func(a, b *Call) int { return a.Number - b.Number })
		fmt.Fprintf(p, "  %s, whose lines are not known or not here\n", p.margin(elsewhere))
	}
	if wide > 0 {
		fmt.Fprintf(p, "  # calls of this line; * may have changed something\n")
	}
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
func (p *printer) margin(calls []*Call) string {
	if len(calls) == 0 {
		return ""
	}
	var all []int
	writes := ""
	for _, c := range calls {
		all = append(all, c.Number)
		if c.Writes {
			writes = "*"
		}
	}
	slices.Sort(all) // some have overtaken others
	return numbers(all) + writes
}
