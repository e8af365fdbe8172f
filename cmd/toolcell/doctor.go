package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/python"
)

func doctorCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:  doctorName,
		Usage: "check this machine and print fixes",
		Description: "It also checks the image that code runs on (--image), its registry if it is not here yet,\n" +
			"and the entries in the files of MCP clients. Exit codes: 0 if nothing is missing, 1 if\n" +
			"sandboxes run with something missing, 3 if they cannot run.",
		Flags: flags(doctorSettings), Action: action(s, runDoctor),
	}
}

// doctorName is the command that works with a settings file that no other command can use.
const doctorName = "doctor"

// doctorSettings are those that say what a sandbox needs. The others cannot be flags,
// but values of variables that serve would refuse are errors here too.
var doctorSettings = append([]string{
	"image", "memory", "pids", "cpus", "container-user", "mounts", "project", "policy", "servers-config", "allow-self-server",
}, settings.ForImages...)

func runDoctor(ctx context.Context, o Options) error {
	checks, err := collectChecks(ctx, o, newLogger(o.Settings, o.Err, max(o.Settings.LogLevel, slog.LevelWarn)))
	if err != nil {
		return err
	}
	if o.JSON {
		if err := console.PrintJSON(o.Streams, checks); err != nil {
			return err
		}
	} else {
		printChecks(o.Stdout(), console.ColorsFor(o.Out), checks)
	}
	if _, code := summary(checks); code != console.ExitOK {
		return &console.ExitError{Code: code}
	}
	return nil
}

// collectChecks examines this host, the user's files and the image. It prints nothing; log is of the
// store of images.
func collectChecks(ctx context.Context, o Options, log *slog.Logger) ([]doctor.Check, error) {
	conf, d := o.Settings, o.Settings.Dirs
	err := conf.CheckAll()
	if wrong, ok := errors.AsType[*settings.FileError](err); ok {
		o.FileError, err = wrong, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkMounts(conf); err != nil {
		return nil, err
	}
	python, pythonErr := python.FindOnHost(ctx, "/")
	shown, projectChecks := examineProject(ctx, conf)
	checks := doctor.Examine(doctor.Needs{
		Limits: conf.Runs.Limits, UID: conf.UID, GID: conf.GID, Dirs: []string{d.Cache, d.State, d.Run}, Images: d.Cache,
		Config: settings.ConfigDir(), Mounts: conf.Mounts, Project: shown, Inside: keptIn(d.Cache), Python: python.Exe, PythonErr: pythonErr,
	})
	found := discoverServers(conf, slog.New(slog.DiscardHandler))
	servers, pinned := found.config.Servers, pins.Store{Dir: d.Pins()}
	checks = slices.Concat(checks, absentMounts(conf), projectChecks, policyChecks(conf, found.config), settingsChecks(o), typoChecks(),
		checkServerFolders(servers, conf.OwnFiles()), checkServerPins(servers, pinned), checkClients(found.options))
	checks = append(checks, sandboxCheck(ctx, conf, checks, pythonErr))
	checks = append(checks, checkServerSandboxes(listServers(conf, found.config), checks)...)
	if firstFatal(checks) < 0 { // otherwise nothing would run on it
		checks = append(checks, imageChecks(ctx, conf, log, pythonErr)...)
	}
	return checks, context.Cause(ctx) // of what was cut short nothing is known
}

// examineProject returns what code is shown of the working folder, or why it is not.
func examineProject(ctx context.Context, conf settings.Settings) (*spec.Project, []doctor.Check) {
	const code = "RC-MOUNT"
	if conf.Project != settings.ProjectRead {
		return nil, nil
	}
	p := shownProject(conf, nil)
	dir, err := p.Resolve("")
	if err != nil { // serve may be started elsewhere
		return nil, []doctor.Check{doctor.OK(code, err.Error())}
	}
	found, err := p.Find(ctx, dir)
	if err != nil {
		return nil, []doctor.Check{doctor.Degraded(code, err.Error(), "# or give code another folder: --project=off --mounts FOLDER:"+project.Target)}
	}
	return found, nil
}

// keptIn are the folders of the cache whose content others must not change: sandboxes
// import it, and descriptions of servers come from it.
func keptIn(cache string) (dirs []string) {
	for _, name := range []string{
		"images", "images/rootfs", "images/layers", "images/refs", "packages", "packages/wheels", "packages/sets", "packages/requests",
		"packages/pythons", "packages/uv", "npm", "npm/layers", "runner", "servers",
	} {
		dirs = append(dirs, filepath.Join(cache, name))
	}
	return dirs
}

func firstFatal(checks []doctor.Check) int {
	return slices.IndexFunc(checks, func(c doctor.Check) bool { return c.Status == doctor.CheckFatal })
}

// sandboxCheck runs Python in a real sandbox, on the host's own /usr, since
// doctor examines the host, not a registry.
func sandboxCheck(ctx context.Context, conf settings.Settings, checks []doctor.Check, pythonErr error) doctor.Check {
	const code = "RC-SANDBOX"
	cause := firstFatal(checks)
	if pythonErr != nil && cause < 0 {
		return doctor.Degraded(code, "not tried, since this host has no Python for it",
			"# try one of an image instead:\n"+text.ShellWord(program.Self())+" exec -c 'print(1)'")
	}
	conf.Image, conf.ImageNamed = "host", true
	var version, cure string
	var took time.Duration
	err := pythonErr
	if err == nil {
		version, cure, took, err = tryPython(ctx, conf)
	}
	switch {
	case err == nil:
		return doctor.OK(code, fmt.Sprintf("Python %s of this host ran in a sandbox, in %d ms", version, took.Milliseconds()))
	case cause >= 0: // it also has the fix
		return doctor.Fatal(code, "a sandbox cannot run, see "+checks[cause].Code, "")
	}
	return doctor.Fatal(code, "a sandbox did not run: "+err.Error(), cure)
}

// tryPython runs one line of Python in a sandbox. What is wrong with the policy has a
// check of its own, so it is not logged.
func tryPython(ctx context.Context, conf settings.Settings) (version, cure string, took time.Duration, err error) {
	a, err := openApp(conf, appOptions{log: slog.New(slog.DiscardHandler), servers: &discovered{}}) // a check changes nothing and calls no server
	if untrusted, ok := errors.AsType[*cachedir.UntrustedError](err); ok {
		return "", "# " + untrusted.Cure, 0, err
	} else if err != nil {
		return "", "", 0, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	start := time.Now()
	r := a.runs.Do(ctx, run.Request{Code: "import sys; print(sys.version.split()[0])", Timeout: 30 * time.Second})
	if r.IsError() {
		return "", r.Hint, 0, errors.New(r.Error)
	}
	return strings.Join(r.Stdout, " "), "", time.Since(start), nil
}

// printChecks prints a line for each check, with its fix below, and a summary.
func printChecks(w io.Writer, color console.Colors, checks []doctor.Check) {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.Code))
	}
	indent := strings.Repeat(" ", len("degraded  ")+width+1)
	for _, c := range checks {
		pad := strings.Repeat(" ", len("degraded ")-len(c.Status))
		fmt.Fprintf(w, "%s%s %-*s %s\n", color.Status(c.Status), pad, width, c.Code, c.Text)
		if c.Cure != "" {
			fix := strings.TrimPrefix(c.Cure, "# ") // beside "fix:" nothing is typed into a shell
			fmt.Fprintf(w, "%sfix: %s\n", indent, strings.ReplaceAll(fix, "\n", "\n"+indent+"     "))
		}
	}
	said, _ := summary(checks)
	fmt.Fprintln(w, said)
}

// summary says what the checks come to, and returns the exit code for it.
func summary(checks []doctor.Check) (said string, code int) {
	missing := 0
	for _, c := range checks {
		switch {
		case c.Status == doctor.CheckFatal && (c.Code == "RC-IMAGE" || c.Code == "RC-REGISTRY"):
			return "this host can run sandboxes, but not with this image; first fix " + c.Code, console.ExitHost
		case c.Status == doctor.CheckFatal:
			return "this host cannot run sandboxes; first fix " + c.Code, console.ExitHost
		case c.Status == doctor.CheckDegraded:
			missing++
		}
	}
	if missing == 0 {
		return "this host can run sandboxes", console.ExitOK
	}
	return "this host can run sandboxes, with " + text.Plural(missing, "problem"), console.ExitFail
}
