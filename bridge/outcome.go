package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"github.com/toolcell/toolcell/oci"
)

// An outcome is what is known once a run has ended.
type outcome struct {
	exit  oci.Exit
	err   error // of the sandbox itself
	talk  *talk
	wires *output.Pipes
	image string // its name
	kept  bool   // the sandbox has not ended: the exit is the run's
}

// conclude tells the ways apart in which a run ends, in this one place.
func (s *Server) conclude(ctx context.Context, r *Result, p plan, o outcome) *Result {
	var cutOut, cutErr bool
	r.Stdout, cutOut = o.wires.Stdout.Lines()
	r.Stderr, cutErr = o.wires.Stderr.Lines()
	r.Truncated = cutOut || cutErr
	defer func() {
		if r.IsError() {
			o.talk.effects.tell(r)
		}
	}()
	done := o.talk.doneFrame()
	s.noteLimits(r, done, o.exit)
	timedOut := errors.Is(context.Cause(ctx), errTimeout) || o.talk.timeIsUp() && o.talk.broken()
	switch {
	case done == nil && o.talk.broken() && !timedOut:
		return r.fail(StatusError, fmt.Errorf("the code broke the connection to the host: %w", o.talk.err))
	case o.exit.OOM && (done == nil || o.exit.Code != 0):
		return r.fail(StatusMemory, fmt.Errorf("the code needed more than the limit of %s of memory and was stopped", mebibytes(s.o.Limits.Memory)))
	case timedOut && (done == nil || o.exit.Signal != 0):
		r.TimeoutSeconds, r.Stack = int(math.Ceil(p.timeout.Seconds())), o.talk.stack()
		if !o.talk.wasReady() {
			return r.fail(StatusTimeout, fmt.Errorf("the %s of the run were over before Python had started", seconds(p.timeout)))
		}
		return r.fail(StatusTimeout, fmt.Errorf("the code ran longer than %s and was stopped", seconds(p.timeout)))
	case ctx.Err() != nil && (done == nil || o.exit.Signal != 0):
		return r.fail(StatusCancelled, errors.New("the run was cancelled"))
	case o.err != nil && done == nil:
		return r.fail(StatusSandbox, o.err)
	case !o.talk.wasReady():
		return r.fail(StatusSandbox, startFailure(o.exit, r))
	}
	if o.err != nil {
		// The code is done; that its sandbox is hard to remove is not its fault.
		s.o.Log.Error("ending a sandbox", "err", o.err)
	}
	code := o.exit.Code
	r.ExitCode = &code
	if done != nil {
		r.Result = text.Bound(jsonString(done.Result), s.o.MaxOutput)
		r.Error = text.Bound(jsonString(done.Error), maxErrorText)
	}
	if code == 0 {
		r.Status, r.Error = StatusSuccess, ""
		return r
	}
	r.Status = StatusError
	if r.Error == "" {
		r.Error = describeExit(code)
	}
	r.Hint = missingHint(r.Error, o.image)
	return r
}

// noteLimits says which limits the code hit and how large they are, as far as
// it is no status of its own.
func (s *Server) noteLimits(r *Result, done *message, exit oci.Exit) {
	var hit []string
	if done != nil && done.Limit != "" {
		hit = append(hit, done.Limit)
	}
	if exit.PIDs {
		hit = append(hit, "pids")
	}
	words := s.o.Limits.Words()
	for _, limit := range slices.Compact(hit) {
		if words[limit] != "" {
			r.Notes = append(r.Notes, "the code hit a limit: "+words[limit])
		}
	}
}

// maxErrorText bounds the one line that says what went wrong, in bytes.
const maxErrorText = 4 << 10

// startFailure explains a sandbox whose Python never said that it is there.
func startFailure(exit oci.Exit, r *Result) error {
	why := describeExit(exit.Code)
	if n := len(r.Stderr); n > 0 {
		why = strings.Join(r.Stderr[max(0, n-5):], "; ")
	}
	return fmt.Errorf("starting Python in the sandbox: %s", why)
}

// describeExit says in words what an exit code stands for.
func describeExit(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("the process was ended by signal %d", code-128)
	}
	return fmt.Sprintf("the process ended with exit code %d", code)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
