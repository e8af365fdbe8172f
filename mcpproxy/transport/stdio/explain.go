package stdio

import (
	"errors"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on an explanation, in bytes, and in lines.
const (
	maxExplanation     = 4 << 10 // before it is cleaned
	maxExplanationLine = 300
	maxExplanations    = 3
)

// An explainedError is an error of a server with lines after it that its Launched.Explain gave.
type explainedError struct {
	err   error
	lines string
}

func (e *explainedError) Error() string { return e.err.Error() + "\n" + e.lines }
func (e *explainedError) Unwrap() error { return e.err }

// Explain implements the link of package transport.
func (p *Process) Explain(err error, since time.Time) (explained error) {
	if err == nil || p.explain == nil {
		return err
	}
	defer contain.Recover("explaining an error of a server", func(error) { explained = err })
	lines := p.output.explanation(p.explain(since))
	if lines == "" {
		return err
	}
	return &explainedError{err, lines}
}

// explanation makes what Launched.Explain gave fit for an error text.
func (t *outputTail) explanation(given string) string {
	var lines []string
	for line := range strings.Lines(text.Clip(given, maxExplanation)) {
		line = text.Clean(t.hidden.Text(line))
		if line = text.Printable(t.hidden.Text(line), maxExplanationLine); line != "" && len(lines) < maxExplanations {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Explanation returns the lines that Explain has added to an error, "" if there are none.
func Explanation(err error) string { return strings.TrimPrefix(explanationOf(err), "\n") }

// explanationOf returns the lines after an error, with the end of the line before them; "" if
// there are none.
func explanationOf(err error) string {
	if e, ok := errors.AsType[*explainedError](err); ok {
		return "\n" + e.lines
	}
	return ""
}

// withoutExplanation returns an error without the lines after it.
func withoutExplanation(err error) error {
	e, ok := errors.AsType[*explainedError](err)
	if !ok {
		return err
	}
	before, found := strings.CutSuffix(err.Error(), "\n"+e.lines)
	if !found { // a secret in them was replaced
		before = e.err.Error()
	}
	return &shortError{before, err}
}
