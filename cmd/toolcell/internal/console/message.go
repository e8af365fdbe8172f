package console

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/rivo/uniseg"
)

// Message prints a label and a text, such as an error. On a terminal long lines are broken
// between words; elsewhere they stay as they are.
func Message(out *os.File, label string, paint func(string) string, text string) {
	body := Shown(out, text)
	if width := terminalWidth(out); width > 0 {
		body = wrapText(body, uniseg.StringWidth(label)+1, width)
	}
	fmt.Fprintf(out, "%s %s\n", paint(label), body)
}

// Error prints an error or what comes with one.
func Error(out *os.File, text string) { Message(out, "toolcell:", ColorsFor(out).Red, text) }

// Hint prints advice.
func Hint(out *os.File, text string) { Message(out, "hint:", ColorsFor(out).Cyan, text) }

// Note prints a line that no result depends on.
func Note(out *os.File, text string) {
	Message(out, "toolcell: note:", ColorsFor(out).Yellow, text)
}

// Plainly prints a message that is neither an error nor a hint.
func Plainly(out *os.File, text string) {
	Message(out, "toolcell:", func(s string) string { return s }, text)
}

const (
	continued    = "  " // before a line that continues another
	narrowest    = 20   // columns: narrower lines are not broken
	mostIndented = 8    // columns before a line of a quotation that its continuations keep
)

// wrapText breaks lines that are wider than a terminal. The first one begins after some
// columns. Words stay whole: one that is wider, such as a path, can still be copied.
func wrapText(s string, used, width int) string {
	if width < narrowest {
		return s
	}
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if used+uniseg.StringWidth(line) <= width {
			out = append(out, line)
		} else {
			out = append(out, wrapLine(line, used, width)...)
		}
		used = 0
	}
	return strings.Join(out, "\n")
}

func wrapLine(line string, used, width int) (lines []string) {
	indent := line[:min(len(line)-len(strings.TrimLeft(line, " ")), mostIndented)]
	current, at := indent, used+len(indent)
	for i, word := range strings.Fields(line) {
		wide := uniseg.StringWidth(word)
		switch {
		case i == 0:
		case at+1+wide > width:
			lines = append(lines, current)
			current, at = indent+continued, len(indent)+len(continued)
		default:
			current, at = current+" ", at+1
		}
		current, at = current+word, at+wide
	}
	return append(lines, current)
}

// A NoteHandler is a slog.Handler that prints each warning as a note, for the user of a shell.
type NoteHandler struct {
	Out   *os.File
	attrs string
}

// Enabled implements slog.Handler.
func (n *NoteHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle implements slog.Handler.
func (n *NoteHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message + n.attrs
	r.Attrs(func(a slog.Attr) bool {
		if value := a.Value.Resolve().String(); value != "" && !strings.Contains(text, value) {
			text += written(a)
		}
		return true
	})
	Note(n.Out, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (n *NoteHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *n
	for _, a := range attrs {
		with.attrs += written(a)
	}
	return &with
}

// WithGroup implements slog.Handler. The names of the attributes are enough.
func (n *NoteHandler) WithGroup(string) slog.Handler { return n }

func written(a slog.Attr) string {
	value := Plain(a.Value.Resolve().String())
	if a.Key == "err" || a.Key == "reason" {
		return ": " + value
	}
	return "; " + a.Key + " " + value
}
