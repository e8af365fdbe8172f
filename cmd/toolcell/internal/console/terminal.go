package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
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
