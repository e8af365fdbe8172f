package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

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

// port finds what differs from one failure to reach a registry to the next.
var port = regexp.MustCompile(`:\d+`)

// newNotes reports whether the notes differ from those that the file stands for, and
// writes the digest of these to it.
func newNotes(file string, notes []string) bool {
	sum := sha256.Sum256([]byte(port.ReplaceAllString(strings.Join(notes, "\n"), "")))
	digest := hex.EncodeToString(sum[:]) + "\n"
	shown, err := os.ReadFile(file)
	if err == nil && string(shown) == digest {
		return false
	}
	if err != nil && len(notes) == 0 {
		return false
	}
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = state.Replace(file, []byte(digest), state.Options{}) // otherwise they are printed again
	}
	return true
}

// notGranted finds the server that code was not allowed to call.
var notGranted = regexp.MustCompile(`server "([^"]+)" is not granted to this run`)

// inShell are the fixes that results tell a model of, and what to type in a shell.
var inShell = []struct {
	told  *regexp.Regexp
	typed string
}{
	{regexp.MustCompile(`: call one of the user's MCP servers instead$`), ": allow the host in [network] of the policy, and add --server https://HOST"},
	{regexp.MustCompile(`add "(https?://[^"]+)" to (?:the servers of the call|servers\b)`), "add --server $1"},
	{regexp.MustCompile(`[Tt]he user can set MCP_BRIDGE_IMAGE to `), "--image can name "},
}

// forTyping writes what to do about a failure as the user of a shell can do it.
func forTyping(told string) string {
	for _, fix := range inShell {
		told = fix.told.ReplaceAllString(told, fix.typed)
	}
	return told
}

// explain adds what the user of a shell should know of a failure.
func (s script) explain(r *run.Result) *run.Result {
	explained := *r
	explained.Hint = forTyping(r.Hint)
	if r.Cause() != nil { // otherwise the code has printed it
		explained.Error = forTyping(r.Error)
	}
	module, _, _ := strings.Cut(hints.ModuleOf(r.Error), ".")
	denied := notGranted.FindStringSubmatch(r.Error)
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
		if file := filepath.Join(dir, name); exists(file) {
			return file
		}
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
