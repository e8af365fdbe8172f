package console

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens the terminal that controls this process, whatever its standard
// streams are. There may be none.
func OpenTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// DropTyped forgets what was typed before a question is shown: it cannot be the answer.
func DropTyped(terminal *os.File) error {
	if err := unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	return nil
}
