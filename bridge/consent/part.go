package consent

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choosable returns how many of the calls can be allowed without the others: the first ones, up
// to this number, which are shown one by one. It is 0 if there is nothing to choose from.
func (q *Question) Choosable() int {
	if len(q.Calls) < 2 {
		return 0
	}
	return min(len(q.Calls), maxListedCalls)
}

// CallsExample returns numbers of calls as they can be given to ParseCalls; "" if none can.
func (q *Question) CallsExample() string {
	switch n := q.Choosable(); n {
	case 0:
		return ""
	case 2:
		return "1"
	case 3:
		return "1,3"
	default:
		return fmt.Sprintf("1,3-%d", min(n, 5))
	}
}

// maxNumbers bounds numbers of calls as they are typed, in bytes.
const maxNumbers = 200

// ParseCalls reads which of the calls are to be allowed, as Answer.Calls has them: numbers with
// commas between them, and ranges, such as 1,3-5. Nothing, a number that the question does not show
// and anything else are errors that say which numbers there are.
func (q *Question) ParseCalls(typed string) (calls []int, err error) {
	most := q.Choosable()
	if most == 0 {
		return nil, errors.New("there are not several calls to choose from")
	}
	wrong := fmt.Errorf("%.40q does not name calls of this question: give numbers from 1 to %d, such as %s", typed, most, q.CallsExample())
	if len(typed) > maxNumbers {
		return nil, wrong
	}
	for part := range strings.SplitSeq(typed, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, to := callNumber(first, most), callNumber(last, most)
		if !isRange {
			to = from
		}
		if from == 0 || to < from {
			return nil, wrong
		}
		for n := from; n <= to; n++ {
			calls = append(calls, n)
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls), nil
}

// callNumber returns a number from 1 to most as it is typed, or 0 if it is none.
func callNumber(typed string, most int) int {
	typed = strings.TrimSpace(typed)
	n, err := strconv.Atoi(typed)
	if err != nil || n < 1 || n > most || strconv.Itoa(n) != typed {
		return 0
	}
	return n
}

// FormatCalls writes numbers of calls as ParseCalls reads them.
func FormatCalls(calls []int) string {
	var parts []string
	for i := 0; i < len(calls); {
		last := i
		for last+1 < len(calls) && calls[last+1] == calls[last]+1 {
			last++
		}
		part := strconv.Itoa(calls[i])
		if last > i {
			part += "-" + strconv.Itoa(calls[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

// checkCalls returns an error if the calls that an answer names are none of the question's.
func (q *Question) checkCalls(a Answer) error {
	if a.Choice != ForCall {
		return fmt.Errorf("only the choice %q can be about some of the calls", ForCall)
	}
	for i, n := range a.Calls {
		if n < 1 || n > q.Choosable() || i > 0 && n <= a.Calls[i-1] {
			return fmt.Errorf("%v are not numbers of calls, in ascending order, from 1 to %d", a.Calls, q.Choosable())
		}
	}
	return nil
}

// leavesOut reports whether an answer allows only some calls, and this one is none of them.
func (a Answer) leavesOut(place int) bool {
	return len(a.Calls) > 0 && !slices.Contains(a.Calls, place+1)
}

// verdict is what the answer to a question means for the call at a place of it; err is what it
// means for all of them.
func (a Answer) verdict(place int, err error) verdict {
	if err == nil && a.leavesOut(place) {
		err = a.denial()
	}
	return verdict{allowed: err == nil, why: err}
}
