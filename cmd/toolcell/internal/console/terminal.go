package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// Terminal reports whether a person is at the other end of f.
func Terminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && st.Mode()&os.ModeDevice != 0 && !isNull(st)
}

// isNull reports whether a file is /dev/null, a character device as well.
func isNull(st os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(st, null)
}

// OpenTerminal opens the terminal that controls this process, whatever its standard
// streams are. There may be none.
func OpenTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// DropTyped discards keys that were typed before a question is shown: they cannot be the answer.
func DropTyped(terminal *os.File) error {
	// Not Fd, which would make the file block: closing it is to end a read.
	raw, err := terminal.SyscallConn()
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	var flushErr error
	err = raw.Control(func(fd uintptr) { flushErr = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	if err = errors.Join(err, flushErr); err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	return nil
}

// MaxTyped bounds a line or value that is read, in bytes.
const MaxTyped = 1 << 20

// ReadLine reads a line that a person types. It returns early when ctx ends,
// and leaves the reading behind: the program is about to end.
func ReadLine(ctx context.Context, in *os.File) (string, error) {
	return contain.Await(ctx, "reading a line", func() (string, error) {
		line, err := bufio.NewReader(io.LimitReader(in, MaxTyped)).ReadString('\n')
		return strings.TrimRight(line, "\r\n"), err
	})
}

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
