package container

import (
	"regexp"
	"strings"

	"github.com/toolcell/toolcell/oci/host"
)

// A StartError is the error of a failed start, with the folders that it needed. Its
// text leaves out libcontainer's account of its own steps.
type StartError struct {
	Err       error
	Host      host.Host
	Dir, Root string // the state folder, and that of the root file system
}

func (e *StartError) Error() string { return plainStart(e.Err.Error()) }
func (e *StartError) Unwrap() error { return e.Err }

// Detail is libcontainer's account.
func (e *StartError) Detail() string { return e.Err.Error() }

const startPrefix = "starting the sandbox: "

// plainStart makes the text of libcontainer's errors fit for users. It ends with the log of
// the children (process_linux.go, "runc init error(s)"), whose first line is the cause: the
// others only report that a child has ended.
func plainStart(text string) string {
	rest, ours := strings.CutPrefix(text, startPrefix)
	if !ours {
		return text
	}
	if _, logged, found := strings.Cut(rest, "runc init error(s): "); found {
		if cause := firstCause(logged); cause != "" {
			return startPrefix + cause
		}
		rest, _, _ = strings.Cut(rest, "; runc init error(s)")
	}
	for _, step := range []string{
		"unable to start container process: ", "unable to create new parent process: ", "error during container init: ",
	} {
		rest = strings.TrimPrefix(rest, step)
	}
	return startPrefix + rest
}

// loggedBy matches the name of libcontainer's child that logged a line.
var loggedBy = regexp.MustCompile(`^(nsexec-\d+|nsexec)\[\d+\]: `)

// firstCause returns the first line of the log that is a cause, or "".
func firstCause(logged string) string {
	for line := range strings.SplitSeq(logged, "; ") {
		line = loggedBy.ReplaceAllString(line, "")
		if line != "" && !strings.HasPrefix(line, "failed to sync with ") {
			return line
		}
	}
	return ""
}
