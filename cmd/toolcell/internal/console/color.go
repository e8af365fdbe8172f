package console

import (
	"os"
	"strings"
)

// Colors colors text on one stream, or leaves it as it is. Nothing else in the
// program writes colors.
type Colors bool

// ColorsFor returns the colors for a file: none unless it is a terminal and the
// user allows them (no-color.org).
func ColorsFor(f *os.File) Colors {
	term := os.Getenv("TERM")
	return Colors(Terminal(f) && os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb")
}

// The numbers are those of Select Graphic Rendition in ECMA-48.

// Bold returns s in bold.
func (c Colors) Bold(s string) string { return c.with("1", s) }

// Red returns s in bold red.
func (c Colors) Red(s string) string { return c.with("1;31", s) }

// Green returns s in green.
func (c Colors) Green(s string) string { return c.with("32", s) }

// Yellow returns s in yellow.
func (c Colors) Yellow(s string) string { return c.with("33", s) }

// Cyan returns s in cyan.
func (c Colors) Cyan(s string) string { return c.with("36", s) }

func (c Colors) with(code, s string) string {
	if !c || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Diff colors a line of a diff.
func (c Colors) Diff(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return c.Green(line)
	case strings.HasPrefix(line, "-"):
		return c.Red(line)
	}
	return line
}

// Status colors a status word.
func (c Colors) Status(s string) string {
	switch s {
	case "ok", "ready":
		return c.Green(s)
	case "degraded", "untrusted", "needs_value", "disabled", "skipped":
		return c.Yellow(s)
	case "fatal", "failed":
		return c.Red(s)
	}
	return s
}
