package console

import "fmt"

// Exit codes of every command.
const (
	ExitOK    = 0
	ExitFail  = 1 // the run's own failure
	ExitUsage = 2 // wrong usage, or a value or file that cannot be used
	ExitHost  = 3 // the host cannot run sandboxes
)

// An ExitError ends the program with a code. Without an error nothing more is
// printed.
type ExitError struct {
	Code int
	Err  error
	Help bool // the help of the command answers the error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error of wrong flags or arguments, which ends the program with
// ExitUsage and names the command's help.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...), Help: true}
}

// Invalidf returns an error of a value or file that cannot be used, which ends the
// program with ExitUsage. The error says what is wrong with it, and help would not.
func Invalidf(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}
