package console

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens the terminal that controls this process, whatever its standard
// streams are. There may be none.
func OpenTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// DropTyped forgets what was typed before a question is shown: it cannot be the answer.
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
