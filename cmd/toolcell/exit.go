package main

import "fmt"

// Exit codes of every command.
const (
	exitOK    = 0
	exitFail  = 1 // the run's own failure
	exitUsage = 2 // wrong usage
	exitHost  = 3 // the host cannot run sandboxes
)

// An exitError ends the program with a code. Without an error nothing is
// printed: the command has said it all.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// usagef is an error of wrong usage.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}
