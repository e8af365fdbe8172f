package main

import "os"

// An ink colors text on one stream. It does nothing where there is no person
// to see it, or one that wants no colors (no-color.org). Nothing else in the
// program writes colors.
type ink bool

func inkFor(f *os.File) ink {
	term := os.Getenv("TERM")
	return ink(terminal(f) && os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb")
}

// Select Graphic Rendition of ECMA-48.
func (i ink) bold(s string) string   { return i.with("1", s) }
func (i ink) red(s string) string    { return i.with("1;31", s) }
func (i ink) green(s string) string  { return i.with("32", s) }
func (i ink) yellow(s string) string { return i.with("33", s) }
func (i ink) cyan(s string) string   { return i.with("36", s) }

func (i ink) with(code, s string) string {
	if !i || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// status colors a word that says how something is.
func (i ink) status(s string) string {
	switch s {
	case "ok", "ready":
		return i.green(s)
	case "degraded", "untrusted", "needs_value", "disabled", "skipped":
		return i.yellow(s)
	case "fatal", "failed":
		return i.red(s)
	}
	return s
}

// terminal reports whether a person is at the other end of f.
func terminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && st.Mode()&os.ModeDevice != 0 && !isNull(st)
}

// isNull reports whether a file is /dev/null, a character device as well.
func isNull(st os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(st, null)
}
