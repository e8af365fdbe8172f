package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
)

// currentProject returns the project whose saved tools this process sees, "" outside of one.
func currentProject() string {
	dir, err := os.Getwd()
	if err != nil {
		return "" // it was removed: no project is left in it
	}
	home, _ := os.UserHomeDir() // without one it is no project's neighbor
	return savedtools.ProjectOf(dir, home)
}

// An app holds the parts of the program, wired together for a command that runs
// code.
type app struct {
	runs         *run.Runs
	policy       *policy.Policy
	proxy        *mcpproxy.Proxy
	launcher     *serverLauncher
	environments environments
	images       *sandboxes.Images // of the environment at the start
	record       *record.Journal
	inbox        *inbox.Server    // nil if its questions cannot be asked for
	signals      *signals.Signals // nil if nothing is exported
}

// appOptions are the choices of a command that are not settings.
type appOptions struct {
	log        *slog.Logger
	policyLog  *slog.Logger                          // of the policy; log if nil
	background func(s settings.Settings) *background // makes what works for an environment; nil if nothing does
	command    string                                // whose runs are recorded; they are not if it is empty
	servers    *discovered                           // the user's MCP servers
	live       *settings.Live                        // of serve, whose sessions are recorded; nil for a command
	level      *slog.LevelVar                        // of the log of serve
}

// openApp wires everything. Nothing is started or fetched yet.
func openApp(s settings.Settings, o appOptions) (_ *app, err error) {
	defer func() {
		if err != nil {
			o.log.Debug("toolcell cannot work here", "error", doctor.Detail(err))
		}
	}()
	a := &app{environments: environments{byKey: map[string]*environment{}}}
	a.environments.open = func(s settings.Settings) (*environment, error) {
		env, err := openEnvironment(s, o.log, o.background)
		if err == nil && o.live != nil {
			// One fewer than may run: with a low RLIMIT_NOFILE a run must not compete
			// with a standby start.
			env.runtime.KeepStandbys(oci.PoolOptions{Start: s.Start, Max: maxParallel(s.Runs.Sessions) - 1, Idle: s.Proxy.IdleTimeout})
		}
		return env, err
	}
	start := s
	if err := s.CheckAbsent(); err != nil && o.live != nil {
		o.log.Error("no code runs until its mounts are there", "err", err)
		start = s.WithoutAbsent()
	}
	env, err := a.environments.of(start)
	if err != nil {
		return nil, err
	}
	a.images = env.images
	a.signals = signals.Open(signals.Options{Version: version, Log: o.log})
	a.policy = loadPolicy(s, cmp.Or(o.policyLog, o.log))
	servers := proxyOptions(s, o.log)
	a.launcher = newServerLauncher(s, a.policy, o.log)
	a.launcher.give(&servers)
	servers.Signals = a.signals
	servers.Refresh = o.servers.refresh(o.log)
	a.proxy = mcpproxy.New(o.servers.config, servers)
	warnOfSections(o.log, a.policy, o.servers.config.Servers)
	d, options := s.Dirs, s.Runs
	options.Log, options.Signals, options.Upstreams, options.Policy = o.log, a.signals, a.proxy, a.policy
	options.MaxParallel = maxParallel(options.Sessions)
	options.Project, options.ToolsDir = currentProject(), d.Tools()
	options.RunsDir = filesDir(s)
	a.record = openRecord(s, o, a.proxy)
	options.Record, options.RecordRequired = a.record, s.RecordRequired
	env.give(&options)
	if o.live != nil {
		options.SessionsDir = filepath.Join(d.State, "sessions")
		options.Current = func(before run.Options) (run.Options, string, error) { return a.current(before, o) }
	} else {
		// A server of a command ends with it, so that another try would begin anew. Its sessions
		// end with it, too, and need no records.
		options.StartTimeout = time.Hour
	}
	a.runs = run.New(options)
	if o.live != nil {
		// It lets toolcell approvals answer; without it there are other ways.
		if a.inbox, err = inbox.Listen(inbox.Dir(d.Run), a.runs.Queue(), activity{a}, a.policy.StrictApprovals, o.log); err != nil {
			o.log.Warn("questions of this process cannot be answered with toolcell approvals", "err", err)
			a.inbox = nil
		}
	}
	return a, nil
}

// current returns the options of a run with the settings as they are now.
func (a *app) current(o run.Options, of appOptions) (run.Options, string, error) {
	s := of.live.Now()
	now := s.Runs
	o.Timeout, o.MaxTimeout, o.Limits, o.Preload = now.Timeout, now.MaxTimeout, now.Limits, now.Preload
	o.MaxOutput, o.Pictures, o.Files = now.MaxOutput, now.Pictures, now.Files
	o.SessionIdle, o.ApprovalTimeout = now.SessionIdle, now.ApprovalTimeout
	a.proxy.SetTimeouts(s.Proxy.StartTimeout, s.Proxy.IdleTimeout)
	of.level.Set(s.LogLevel)
	env, err := a.environments.of(s)
	if err != nil {
		return o, "", fmt.Errorf("the settings cannot be used as they are now: %w", err)
	}
	env.give(&o)
	return o, of.live.Note(), nil
}

// proxyOptions returns the options of the proxy for the user's servers. Where these may start, a
// serverLauncher has to give its own.
func proxyOptions(s settings.Settings, log *slog.Logger) mcpproxy.Options {
	o := s.Proxy
	o.Log, o.ClientVersion = log, version
	return o
}

// Close ends everything, users before what they use.
func (a *app) Close() (err error) {
	if a.inbox != nil {
		err = a.inbox.Close()
	}
	a.runs.Close()
	err = errors.Join(err, a.record.Close(), a.proxy.Close(), a.launcher.Close(), a.environments.Close())
	a.signals.Close()
	return err
}

// Open files that a sandbox needs while it starts, and that the rest of the program needs.
const (
	sandboxFiles = 24
	otherFiles   = 24
)

// maxParallel returns the number of concurrent runs, beside idle sessions. The limit of open
// files bounds it, so that further runs wait instead of failing.
func maxParallel(sessions int) int {
	const maxRuns = 16
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > uint64(otherFiles+(maxRuns+sessions)*sandboxFiles) {
		return maxRuns
	}
	return max(1, (int(l.Cur)-otherFiles)/sandboxFiles-sessions)
}

// shellLogger returns the log of a command that a user types: it prints warnings as notes,
// nothing with -q, and structured lines with --log-level or --log-json.
func shellLogger(o Options) *slog.Logger {
	switch {
	case o.Quiet:
		return slog.New(slog.DiscardHandler)
	case o.Settings.Typed("log-level"), o.Settings.Typed("log-json") && o.Settings.LogJSON:
		return newLogger(o.Settings, o.Err, o.Settings.LogLevel)
	}
	return slog.New(&console.NoteHandler{Out: o.Err})
}

// newLogger writes structured lines to stderr: stdout is the protocol.
func newLogger(s settings.Settings, w io.Writer, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	log := slog.New(slog.NewTextHandler(w, o))
	if s.LogJSON {
		log = slog.New(signals.LogHandler{Handler: slog.NewJSONHandler(w, o)})
	}
	keepLog(log)
	if s.Runtime != "auto" && s.Runtime != "" {
		log.Warn("the setting runtime is not needed: toolcell starts its sandboxes itself", "value", s.Runtime)
	}
	return log
}
