package console

import (
	"context"
	"log/slog"
	"os"
	"strings"
)

// A NoteHandler prints warnings for the user of a shell, a note each, where a server's
// log has structured lines.
type NoteHandler struct {
	out   *os.File
	attrs string
}

// NewNoteHandler returns a handler that prints notes on out.
func NewNoteHandler(out *os.File) *NoteHandler { return &NoteHandler{out: out} }

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
	Note(n.out, text)
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
