package console

import "fmt"

// Exit codes of every command.
const (
	ExitOK    = 0
	ExitFail  = 1 // the run's own failure
	ExitUsage = 2 // wrong usage
	ExitHost  = 3 // the host cannot run sandboxes
)

// An ExitError ends the program with a code. Without an error nothing more is
// printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error of wrong usage, which ends the program with ExitUsage.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}
