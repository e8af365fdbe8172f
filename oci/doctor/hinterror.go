package doctor

import "errors"

// A HintError is an error that the user can fix; Hint is the command to type.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Advice returns the hint.
func (e *HintError) Advice() string { return e.Hint }

// Advice returns what the user can do about an error, "" if unknown. Errors of registries
// have advice, too.
func Advice(err error) string {
	if known, ok := errors.AsType[interface {
		Advice() string
		error
	}](err); ok {
		return known.Advice()
	}
	return ""
}

// Detail returns the text of an error for a log, with the text of libraries that Error leaves
// out.
func Detail(err error) string {
	if known, ok := errors.AsType[interface {
		Detail() string
		error
	}](err); ok {
		return known.Detail()
	}
	return err.Error()
}
