package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// A statusError is the reason why a run failed to start or was stopped, with
// the status of its result.
type statusError struct {
	status string
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// withStatus gives an error a status, unless it is nil.
func withStatus(status string, err error) error {
	if err == nil {
		return nil
	}
	return &statusError{status, err}
}

// cancelled is the error of a run that was ended before its code has begun: by the user, or by its caller.
func cancelled(ctx context.Context, while string) error {
	if why := context.Cause(ctx); stoppedByUser(why) {
		return withStatus(StatusCancelled, fmt.Errorf("%w %s", why, while))
	}
	return withStatus(StatusCancelled, errors.New("the call was cancelled "+while))
}

// stopError is the one place that classifies how something other than the code ends
// a run. It returns nil if the code ended by itself.
func stopError(timeout time.Duration, e ending, stderr []string, limits spec.Limits) error {
	unfinished := !e.done.Reported || e.exit.Signal != 0
	switch {
	case unfinished && errors.Is(e.why, contain.ErrInternal):
		return withStatus(StatusSandbox, e.why)
	case unfinished && errors.Is(e.err, contain.ErrInternal):
		return withStatus(StatusSandbox, e.err)
	case errors.Is(e.why, runner.ErrProtocol) && !e.done.Reported:
		return withStatus(StatusError, fmt.Errorf("the code broke the connection to the host: %w", e.why))
	case e.exit.OOM && (!e.done.Reported || e.exit.Code != 0):
		return withStatus(StatusMemory, fmt.Errorf("the code needed more than the limit of %s of memory and was stopped", text.Size(limits.Memory)))
	case errors.Is(e.why, runner.ErrTimeout) && unfinished && !e.done.Ready:
		return withStatus(StatusTimeout, fmt.Errorf("the %s of the run were over before Python had started", seconds(timeout)))
	case errors.Is(e.why, runner.ErrTimeout) && unfinished:
		return withStatus(StatusTimeout, fmt.Errorf("the code ran longer than %s and was stopped", seconds(timeout)))
	case stoppedByUser(e.why) && (unfinished || e.done.Kept):
		return withStatus(StatusCancelled, e.why)
	case e.why != nil && !errors.Is(e.why, runner.ErrProtocol) && unfinished:
		return withStatus(StatusCancelled, errors.New("the run was cancelled"))
	case e.err != nil && !e.done.Reported:
		return withStatus(StatusSandbox, e.err)
	case !e.done.Ready:
		return withStatus(StatusSandbox, startFailure(e.exit, stderr))
	}
	return nil
}

// statusOf returns the status that an error was given.
func statusOf(err error) string {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return StatusSandbox
}

// limitNotes returns notes about the limits that the code hit and their sizes,
// except for limits with a status of their own.
func limitNotes(e ending, limits spec.Limits) (notes []string) {
	hit := []string{e.done.Limit}
	if e.exit.PIDs {
		hit = append(hit, "pids")
	}
	words := limits.Words()
	for _, limit := range slices.Compact(hit) {
		if words[limit] != "" {
			notes = append(notes, "the code hit a limit: "+words[limit])
		}
	}
	return notes
}

// maxErrorText bounds the one line that says what went wrong, in bytes.
const maxErrorText = 4 << 10

// startFailure explains a sandbox whose Python never reported that it was up.
func startFailure(exit oci.Exit, stderr []string) error {
	why := describeExit(exit.Code)
	if _, quoted := splitAtReason(stderr); len(quoted) > 0 {
		why = strings.Join(quoted, "; ")
	}
	// pid 1 (pid1.c) has written that line, and the kernel's words alone would mislead.
	why = strings.TrimPrefix(why, "toolcell: ")
	switch {
	case strings.HasPrefix(why, "running ") && strings.HasSuffix(why, ": No such file or directory"):
		why += " (the image lacks what it is started with: its loader, or the program in its first line)"
	case strings.HasPrefix(why, "running ") && strings.HasSuffix(why, ": Exec format error"):
		why += " (it is not for this processor)"
	}
	return fmt.Errorf("starting Python in the sandbox: %s", why)
}

// splitAtReason returns the last lines that Python wrote when it did not start, which
// its error quotes, and those before.
func splitAtReason(stderr []string) (before, quoted []string) {
	n := max(0, len(stderr)-5)
	return stderr[:n], stderr[n:]
}

// describeExit says in words what an exit code stands for.
func describeExit(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("the process was ended by signal %d", code-128)
	}
	return fmt.Sprintf("the process ended with exit code %d", code)
}

// seconds writes a duration as a person would.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
