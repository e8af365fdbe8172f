// Package doctor reports what this host lacks for sandboxes, the consequences,
// and the commands that fix it. Checks are functions of facts that were
// gathered from the kernel beforehand, so tests can try them on imaginary
// hosts. It starts no sandbox and leaves nothing behind.
package doctor

import (
	"errors"
	"os"
	"strings"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A Check is one fact about this host that sandboxes depend on. A code stands
// for one cause with one cure and keeps its meaning; docs/doctor.md lists them.
type Check struct {
	Code   string `json:"code"`           // such as RC-USERNS-SYSCTL
	Status string `json:"status"`         // CheckOK, CheckDegraded or CheckFatal
	Text   string `json:"text"`           // what was found, and its consequences
	Cure   string `json:"cure,omitempty"` // what to type, on this host
}

// The results of a check.
const (
	CheckOK       = "ok"
	CheckDegraded = "degraded" // sandboxes run, with something missing
	CheckFatal    = "fatal"    // sandboxes cannot run
)

// OK returns a check that found nothing wrong.
func OK(code, text string) Check { return Check{Code: code, Status: CheckOK, Text: text} }

// Degraded returns a check with which sandboxes run, with something missing.
func Degraded(code, text, cure string) Check {
	return Check{Code: code, Status: CheckDegraded, Text: text, Cure: cure}
}

// Fatal returns a check with which sandboxes cannot run.
func Fatal(code, text, cure string) Check {
	return Check{Code: code, Status: CheckFatal, Text: text, Cure: cure}
}

// Needs describes what a server needs from this host.
type Needs struct {
	Limits   spec.Limits
	UID, GID uint32   // inside
	Dirs     []string // folders that it writes to, which may not exist yet
	Inside   []string // subfolders from which sandboxes import, or with descriptions of servers
	Images   string   // the folder of unpacked root file systems
	Config   string   // the read-only folder of the user's own files

	Python    string // the host's own, for the image "host"
	PythonErr error  // why there is none
	Mounts    []spec.Mount
	Project   *spec.Project // the folder that code can read, besides; nil is none
}

// Examine checks whether this host meets the needs of a server. It starts no sandbox and
// leaves nothing behind.
func Examine(n Needs) []Check {
	h, err := host.Probe(n.UID, n.GID)
	f := gather(h)
	shown, err2 := spec.NewHost(h, n.Mounts)
	if err == nil {
		err = err2
	}
	f.needs = n
	for _, dir := range n.Dirs {
		f.folders = append(f.folders, lookAt(dir, h))
	}
	for _, dir := range n.Inside {
		f.readOnly = append(f.readOnly, rightsInside(dir))
	}
	if n.Config != "" {
		f.readOnly = append(f.readOnly, searchOnly(n.Config, h))
	}
	f.hostErr = err
	f.mounts = mountChecks(shown.Showing(n.Project))
	return f.examine()
}

// examine runs all checks, in the order for the reader.
func (f *hostFacts) examine() []Check {
	if f.hostErr != nil {
		return []Check{Fatal("RC-HOST", "what this host gives could not be found out: "+f.hostErr.Error(), "# start toolcell where there is a /proc")}
	}
	checks := []Check{kernelCheck(f), userNamespaceCheck(f)}
	checks = append(checks, idChecks(f)...)
	checks = append(checks, cgroupCheck(f))
	if f.trial.Stopped == "" || f.trial.Stopped == host.StepProc { // the trial got that far
		checks = append(checks, procCheck(f))
	}
	checks = append(checks, seccompCheck(f), landlockCheck(f))
	checks = append(checks, folderChecks(f)...)
	checks = append(checks, filesCheck(f), pythonCheck(f), submountCheck(f))
	return append(checks, f.mounts...)
}

// ExplainFolders adds the cause and cure to an error if these folders are to blame. The text
// of the original error is then in Detail.
func ExplainFolders(err error, dirs ...string) error {
	h := host.Host{EUID: os.Geteuid()}
	f := &hostFacts{host: h, System: host.ThisSystem(), user: host.UserName(h.EUID), exe: thisProgram()}
	f.spare = lookAt(ownFolder(f), h)
	for _, dir := range dirs {
		f.folders = append(f.folders, lookAt(dir, h))
	}
	for _, c := range folderChecks(f) {
		if c.Status == CheckFatal {
			return c.explaining(err)
		}
	}
	if full(err) && len(f.folders) > 0 { // what was written has been removed again
		at := f.folders[0]
		at.Err = err
		return fullCheck(f, at).explaining(err)
	}
	return err
}

// ExplainStart adds the cause and cure to an error if the host is to blame. The text of the
// original error is then in Detail. It runs the same checks as doctor, so both agree. dir
// and rootfs are the folders that the start needed.
func ExplainStart(err error, h host.Host, dir, rootfs string) error {
	// These come first, since the checks need the same resources.
	for _, s := range scarcities {
		if errors.Is(err, s.errno) || strings.Contains(strings.ToLower(Detail(err)), s.errno.Error()) {
			return &HintError{Err: err, Hint: s.hint}
		}
	}
	f := gather(h)
	f.needs.Images = rootfs
	f.folders = []folder{lookAt(dir, h), searchOnly(rootfs, h)}
	return f.explain(err, dir)
}

func (f *hostFacts) explain(err error, dir string) error {
	for _, c := range f.examine() {
		// The only effect of a noexec mount is that programs on it cannot be started.
		noexec := c.Code == "RC-STATE-NOEXEC" && strings.Contains(Detail(err), "permission denied")
		if c.Status == CheckFatal || noexec {
			return c.explaining(err)
		}
	}
	if full(err) {
		return fullCheck(f, folder{Path: dir, Err: err}).explaining(err)
	}
	return err
}

// scarcities are resources that a host may temporarily run out of, with cures.
// libcontainer's child sends its errors as text.
var scarcities = []struct {
	errno unix.Errno
	hint  string
}{
	{unix.EMFILE, "this program may open too few files at once; raise the limit, for example with: ulimit -n 1024"},
	{unix.ENFILE, "the whole host has too many files open: sudo sysctl -w fs.file-max=1000000"},
	{unix.EAGAIN, "this user has too many processes and threads; end some, or raise the limit (ulimit -u)"},
}

// explaining adds the finding and its cure to an error.
func (c Check) explaining(err error) error {
	return &HintError{Err: &causedError{c, err}, Hint: c.Cure}
}

// A causedError is an error that a check explains.
type causedError struct {
	check Check
	err   error
}

func (e *causedError) Error() string  { return e.check.Text + " (" + e.check.Code + ")" }
func (e *causedError) Detail() string { return e.Error() + ": " + Detail(e.err) }
func (e *causedError) Unwrap() error  { return e.err }

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
