package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// A runFunc runs code, as run.Runs.Do does.
type runFunc func(context.Context, run.Request) *run.Result

// showLive lets req write its output to the streams at once, and returns do with
// what is to be done after each run: colors do not last longer than their code.
// Broken is called when a stream cannot be written, such as one without a reader.
func showLive(ctx context.Context, s *console.Streams, req *run.Request, broken func(error), progress *console.Progress, do runFunc) runFunc {
	out, errs := liveWriter{s.Out, ctx, broken, progress}, liveWriter{s.Err, ctx, broken, progress}
	shownOut, shownErr := console.NewFilter(s.Out, out), console.NewFilter(s.Err, errs)
	req.Stdout, req.Stderr = shownOut, shownErr
	return func(ctx context.Context, req run.Request) *run.Result {
		r := do(ctx, req)
		out.writeLast(shownOut.End())
		errs.writeLast(shownErr.End())
		progress.Hide()
		return r
	}
}

// A liveWriter writes output of the code at once. It calls broken when it
// fails, such as when the reader is gone; a reader that does not read blocks nothing once ctx has ended.
type liveWriter struct {
	file     *os.File
	ctx      context.Context
	broken   func(error)
	progress *console.Progress // makes way
}

func (l liveWriter) Write(b []byte) (int, error) {
	kept := bytes.Clone(b)
	l.progress.Hide()
	if console.Terminal(l.file) {
		defer l.progress.Wrote(kept)
	}
	return contain.Await(l.ctx, "writing the output", func() (int, error) {
		n, err := l.file.Write(kept)
		if err != nil {
			l.broken(err)
		}
		return n, err
	})
}

// lastWrite bounds the last write after the user has stopped a run: the terminal may be
// stopped, too.
const lastWrite = 200 * time.Millisecond

// writeLast writes what ends the output, also if ctx has ended.
func (l liveWriter) writeLast(b []byte) {
	if len(b) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), lastWrite)
	defer cancel()
	_, _ = liveWriter{l.file, ctx, l.broken, l.progress}.Write(b) // a reader that is gone was noticed before
}

// writeError returns why output could not be written, if that is the cause of ctx's
// end. As in any pipeline, a program whose output has no reader ends quietly.
func writeError(ctx context.Context) error {
	var failed *fs.PathError
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, unix.EPIPE):
		return &console.ExitError{Code: console.Stopped{Signal: unix.SIGPIPE}.Code()}
	case errors.As(cause, &failed):
		return failed
	}
	return nil
}

// printResult prints the parts of the result that the streams have not shown
// yet. An error is one of standard output.
func printResult(r *run.Result, s *console.Streams, quiet bool) error {
	if r.Result != "" {
		if _, err := fmt.Fprintln(s.Out, console.Filtered(s.Out, r.Result)); err != nil {
			return err
		}
	}
	for _, l := range bridge.PlanLines(r) {
		if _, err := fmt.Fprintln(s.Out, console.Shown(s.Out, l)); err != nil {
			return err
		}
	}
	shown := func(text string) string { return console.Shown(s.Err, text) }
	stopped := s.Signals.Received() != nil
	switch {
	case stopped: // the user knows
	case r.Status == run.StatusValidation || r.Status == run.StatusSandbox:
		console.Error(s.Err, r.Error)
	case r.IsError() && r.Status != run.StatusError:
		console.Error(s.Err, r.Status+": "+r.Error)
		for _, l := range r.Stack {
			fmt.Fprintf(s.Err, "  %s\n", shown(l))
		}
	case r.ExitCode != nil && *r.ExitCode > 128:
		console.Error(s.Err, r.Error) // as a shell does
	}
	if r.Hint != "" && !stopped {
		console.Hint(s.Err, r.Hint)
	}
	for _, l := range bridge.CallLines(r) {
		console.Plainly(s.Err, l)
	}
	if where := bridge.WhereLine(r); where != "" && r.IsError() { // it may be why
		console.Plainly(s.Err, where)
	}
	for _, n := range r.Notes {
		if !quiet && !stopped {
			console.Note(s.Err, n)
		}
	}
	printFiles(r, s)
	return nil
}

// printFiles says where the files and pictures of a run are.
func printFiles(r *run.Result, s *console.Streams) {
	for _, l := range r.LocalFiles() {
		fmt.Fprintf(s.Err, "toolcell: kept %s (%s)\n", console.Shown(s.Err, l.Path), console.Shown(s.Err, l.Text))
	}
}

// withNewNotes leaves the notes about the host out of a result, unless they differ from those
// that the last exec of this user has printed. The doctor has them all.
func (o execOptions) withNewNotes(r *run.Result) *run.Result {
	nothingRan := len(r.HostNotes()) == 0 && r.ExitCode == nil // so nothing is known of the host
	file := filepath.Join(o.Settings.Dirs.State, "notes-shown")
	if o.Verbose || o.Quiet || nothingRan || newNotes(file, r.HostNotes()) {
		return r
	}
	return r.WithoutHostNotes()
}

// port matches the part of a note that differs between failures to reach a registry.
var port = text.Pattern(`:\d+`)

// newNotes reports whether the notes differ from those in the file, and writes them to it.
func newNotes(file string, notes []string) bool {
	text := port().ReplaceAllString(strings.Join(notes, "\n"), "")
	shown, _ := os.ReadFile(file) // there were none if there is no file
	if string(shown) == text {
		return false
	}
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = state.Replace(file, []byte(text), state.Options{}) // otherwise they are printed again
	}
	return true
}

// notGranted matches the server that code was not allowed to call.
var notGranted = text.Pattern(`server "([^"]+)" is not granted to this run`)

// inShell maps the advice that results give a model to what a user types in a shell.
var inShell = []struct {
	told  func() *regexp.Regexp
	typed string
}{
	{text.Pattern(`: call one of the user's MCP servers instead$`), ": allow the host in [network] of the policy, and add --server https://HOST"},
	{text.Pattern(`add "(https?://[^"]+)" to (?:the servers of the call|servers\b)`), "add --server $1"},
	{text.Pattern(`[Tt]he user can set TOOLCELL_IMAGE to `), "--image can name "},
}

// forTyping writes what to do about a failure as the user of a shell can do it.
func forTyping(told string) string {
	for _, fix := range inShell {
		told = fix.told().ReplaceAllString(told, fix.typed)
	}
	return told
}

// explain rewrites a failure for the user of a shell.
func (s script) explain(r *run.Result) *run.Result {
	explained := *r
	explained.Hint = forTyping(r.Hint)
	if r.Cause() != nil { // otherwise the code has printed it
		explained.Error = forTyping(r.Error)
	}
	module, _, _ := strings.Cut(hints.ModuleOf(r.Error), ".")
	denied := notGranted().FindStringSubmatch(r.Error)
	if _, ok := errors.AsType[*mcpproxy.UnknownServerError](r.Cause()); ok {
		explained.Error = forShell(r.Cause()).Error()
	} else if denied != nil {
		explained.Hint = "to allow it: --server " + text.ShellWord(denied[1])
	} else if file := s.neighbor(module); file != "" {
		name := filepath.Base(file)
		explained.Hint = fmt.Sprintf("only the script itself goes into the sandbox; to give it %s, too: --mounts %s:/workspace/%s", name, file, name)
	}
	return &explained
}

// neighbor returns the path of a module beside the script's file, or "".
func (s script) neighbor(module string) string {
	dir, err := filepath.Abs(filepath.Dir(s.file))
	if s.file == "" || module == "" || err != nil {
		return ""
	}
	for _, name := range []string{module + ".py", module} {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}
