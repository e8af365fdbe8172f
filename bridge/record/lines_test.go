package record_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

func TestLines(t *testing.T) {
	const most = record.MaxLine
	for _, lengths := range [][]int{{}, {0}, {3}, {0, 5, 0, 0, 7}, {65535, 65536, 65537, 1}, {most - 1, most, 2}, {1, most + 1, 1}, {most + 2, 1, 3 * most, 4}, {most, most + 1}} {
		for _, rest := range []bool{false, true} {
			var text strings.Builder
			for i, n := range lengths {
				text.WriteString(strings.Repeat("x", n))
				if i < len(lengths)-1 || !rest {
					text.WriteByte('\n')
				}
			}
			all := text.String()
			lines := record.NewLines(strings.NewReader(all))
			at := 0
			for i, n := range lengths {
				if last := i == len(lengths)-1; n == 0 && last && rest {
					break // nothing is no line
				}
				l, err := lines.Next()
				if err != nil || l.Number != i+1 || l.At != int64(at) || len(l.Text) != min(n, most) || l.Long != (n > most) || l.Rest != (rest && i == len(lengths)-1) {
					t.Fatalf("%d, rest %v: line %d of %d bytes at %d, long %v, rest %v, %v", lengths, rest, l.Number, len(l.Text), l.At, l.Long, l.Rest, err)
				}
				at += n + 1
			}
			if _, err := lines.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%d: %v", lengths, err)
			}
		}
	}
}
