package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/text"
)

// fail returns the result of a run whose code has not begun.
func (r *Run) fail(err error) *Result { return r.emptyResult().fail(err) }

// emptyResult returns what every result of the request has.
func (r *Run) emptyResult() *Result {
	res := &Result{Notes: r.notes, Servers: r.order}
	if r.lowered {
		res.TimeoutSeconds = wholeSeconds(r.timeout)
	}
	return res
}

// newResult assembles the result of a run whose code has ended.
func (r *Run) newResult(e ending) *Result {
	o := r.o
	r.noteFolder(r.python.folderNote)
	res := r.emptyResult()
	res.Stdout, res.Stderr, res.Truncated = r.python.pipes.Lines()
	if e.done.Ready { // otherwise nothing ran, on whatever image
		res.hostNotes = slices.Clone(r.python.image.Notes)
	}
	if e.done.Ready && o.Missing != nil {
		res.hostNotes = append(res.hostNotes, o.Missing(r.python.limits)...)
	}
	if o.Isolation != nil {
		res.Isolation = o.Isolation(r.python.limits)
	}
	if err := stopError(r.timeout, e, res.Stderr, r.python.limits); err != nil {
		if errors.Is(e.why, runner.ErrTimeout) && statusOf(err) == StatusTimeout {
			res.TimeoutSeconds, res.Stack = wholeSeconds(r.timeout), e.done.Stack
		}
		if e.err == nil && statusOf(err) == StatusSandbox { // the error quotes them
			res.Stderr, _ = splitAtReason(res.Stderr)
		}
		return res.fail(err)
	}
	if e.err != nil {
		// The code has ended, so an error in removing the sandbox is not an error of
		// the run.
		o.Log.Error("ending a sandbox", "err", e.err)
	}
	code := e.exit.Code
	res.ExitCode, res.Result = &code, text.Bound(e.done.Result, o.MaxOutput)
	if code == 0 {
		res.Status = StatusSuccess
		return res
	}
	res.Status, res.Error = StatusError, text.Bound(e.done.Error, maxErrorText)
	if res.Error == "" {
		res.Error = describeExit(code)
	}
	res.Hint = r.python.packages.programHint(res.Error)
	return res
}

// addCalls puts into the result the calls that may have changed something: those of a dry run,
// and those of a run that has failed; and where the servers run.
func (r *Run) addCalls(res *Result) {
	if r.req.Plan {
		plan := r.gate.Plan()
		res.Plan, res.PlanLeftOut = append([]gate.PlannedCall{}, plan.Calls...), plan.LeftOut
	}
	_, res.effects, res.moreEffects = r.gate.Past()
	res.Where = r.gate.Where()
	if res.IsError() {
		log := r.gate.CallLog()
		res.Calls, res.CallsLeftOut, res.ReadOnlyCalls = log.Calls, log.LeftOut, log.ReadOnly
	}
}

// refusedHint says what the sandboxes of servers have refused while code ran that failed: a tool may
// only say that it has no connection.
func (r *Run) refusedHint(res *Result, began time.Time) string {
	if res.Status != StatusError {
		return ""
	}
	for _, server := range r.gate.Used() {
		if refused := r.runs.o.Upstreams.Refused(server, began); refused != "" && !strings.Contains(res.Error, refused) {
			return fmt.Sprintf("server %q: %s", server, refused)
		}
	}
	return ""
}

// addNetwork adds the hosts that were reached, and says once what was refused: in the hint if the
// code has failed.
func (r *Run) addNetwork(res *Result, report network.Report) (notes []string) {
	res.Network = report.Uses
	unsent := report.Unsent()
	if res.Status == StatusError && res.Hint == "" {
		if r.egress == nil {
			res.Hint = network.UnaskedHint(r.policy, r.req.Code, res.Error)
		} else if res.Hint, unsent = unsent, ""; res.Hint == "" {
			res.Hint = report.BypassedHint(res.Error)
		}
	}
	if unsent != "" {
		notes = append(notes, unsent)
	}
	if report.Unchecked {
		notes = append(notes, "addresses were not checked: connections went through the proxy of the host ([network] via = \"env\")")
	}
	return notes
}

// hint suggests how to fix what went wrong, or returns "".
func (r *Run) hint(res *Result, e ending) string {
	o, silent := r.o, r.gate.Silent()
	switch {
	case silent != nil && (res.Status == StatusTimeout || res.Status == StatusError && strings.Contains(res.Error, "is still starting")):
		return hints.Silent(silent.Server, time.Since(silent.Since))
	case res.Status == StatusTimeout && r.python.image.Compiling:
		return hints.Compiling(res.Stack)
	case res.Status != StatusError && res.Status != StatusSuccess:
		return ""
	}
	unawaited, inDef := after(runner.CauseUnawaited, e.done.Cause), after(runner.CauseUnawaitedInDef, e.done.Cause)
	if inDef != "" {
		unawaited = inDef
	}
	may, listed := r.packageNames()
	at := r.python.project()
	return hints.For(hints.Case{
		Failed: res.Status == StatusError, Error: res.Error, ToolValue: e.done.Cause == runner.CauseToolValue,
		HoldsJSON: strings.HasPrefix(e.done.Cause, runner.CauseJSONText), JSONText: after(runner.CauseJSONText, e.done.Cause),
		Unawaited: unawaited, InDef: inDef != "",
		Planned: len(res.Plan) > 0,
		Stdout:  res.Stdout, Stderr: res.Stderr, Code: r.req.Code, Image: r.python.image.Name,
		Packages: may, Listed: listed, Network: r.egress != nil,
		Lookup: o.Upstreams.Lookup, Granted: r.granted,
		Mounted: r.python.mounted, Project: at, Folder: cmp.Or(r.folder, o.Project), NoProject: o.Shown == nil, NotShown: o.Shown != nil && at == "",
		Written: &r.runs.written,
		Earlier: &r.runs.defined, Session: r.req.Session, Live: r.runs.sessions.isLive, NoSessions: o.Sessions <= 0,
	})
}

// writtenNames are the files that a run has left in /workspace/out, by their names in it.
func writtenNames(files []artifacts.File) (names []string) {
	for _, f := range files {
		if f.Name != "stdout.txt" && f.Name != "stderr.txt" { // they are what was printed
			names = append(names, f.Name)
		}
	}
	return names
}

// after returns what follows a prefix, or "".
func after(prefix, s string) string {
	rest, found := strings.CutPrefix(s, prefix)
	if !found {
		return ""
	}
	return rest
}
