package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/packages"
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

// parts run code: the images and packages on this machine, and the sandboxes.
type parts struct {
	store     *rootfs.Store
	wheels    *packages.Store
	runtime   *oci.Runtime
	runnerDir string
}

// openParts opens them. Nothing is started or fetched yet.
func openParts(s settings.Settings, log *slog.Logger) (parts, error) {
	store, err := openStore(s, log)
	if err != nil {
		return parts{}, err
	}
	var runtime *oci.Runtime
	runnerDir, err := runner.Write(filepath.Join(s.Dirs.Cache, "runner"))
	if err == nil {
		err = cachedir.CheckOwn(s.Dirs.Cache, "runner", filepath.Join("runner", filepath.Base(runnerDir)))
	}
	if err == nil {
		runtime, err = oci.Open(s.Dirs.Run, s.UID, s.GID)
	}
	if err != nil {
		return parts{}, errors.Join(s.Dirs.Explain(err), store.Close())
	}
	return parts{store, openPackages(s), runtime, runnerDir}, nil
}

// Close closes what was opened, users before what they use.
func (p parts) Close() error {
	return errors.Join(p.runtime.Close(), p.wheels.Close(), p.store.Close())
}

// image returns the source of the image that code runs on.
func (p parts) image(s settings.Settings) *sandboxes.Images {
	return &sandboxes.Images{Store: p.store, Ref: s.Image, Named: s.ImageNamed, Runner: p.runnerDir, Dirs: s.Dirs}
}

// packages returns the source of the packages that scripts name.
func (p parts) packages(s settings.Settings) *sandboxes.Packages {
	return &sandboxes.Packages{Store: p.wheels, Sandboxes: sandboxes.Runtime{Runtime: p.runtime, Dirs: s.Dirs}, Dirs: s.Dirs, Limits: s.Runs.Limits}
}

// An app holds the parts of the program, wired together for a command that runs
// code.
type app struct {
	parts
	runs    *run.Runs
	policy  *policy.Policy
	proxy   *mcpproxy.Proxy
	images  *sandboxes.Images
	scripts *sandboxes.Packages
	inbox   *inbox.Server // nil if its questions cannot be asked for
}

// appOptions are the choices of a command that are not settings.
type appOptions struct {
	log        *slog.Logger
	policyLog  *slog.Logger // of the policy; log if nil
	background sandboxes.Background
	servers    *discovered    // the user's MCP servers
	serves     bool           // for MCP clients: sessions are recorded
	live       *settings.Live // what the user changes meanwhile; nil if the settings stay
}

// openApp wires everything. Nothing is started or fetched yet.
func openApp(s settings.Settings, o appOptions) (_ *app, err error) {
	defer func() {
		if err != nil {
			o.log.Debug("toolcell cannot work here", "error", doctor.Detail(err))
		}
	}()
	if err := s.CheckMounts(); err != nil {
		return nil, err
	}
	p, err := openParts(s, o.log)
	if err != nil {
		return nil, err
	}
	d, runtime := s.Dirs, p.runtime
	runtime.Mount(s.Mounts)
	servers := proxyOptions(s, o.log)
	servers.Refresh = o.servers.refresh(o.log)
	proxy := mcpproxy.New(o.servers.config, servers)
	images, scripts := p.image(s), p.packages(s)
	images.Mounts, images.Background = s.Places(), o.background
	scripts.Offline, scripts.Background = s.Pull == rootfs.PullNever, o.background
	rules := loadPolicy(s, cmp.Or(o.policyLog, o.log))
	warnOfSections(o.log, rules, o.servers.config.Servers)
	options := s.Runs
	options.Log, options.Upstreams, options.Policy = o.log, proxy, rules
	options.Rootfs, options.Cached = images.Get, images.Cached
	options.Packages = scripts.Get
	options.PackagesHere = func(ctx context.Context, n run.Needs) bool {
		image, ok := images.Cached(ctx)
		return ok && scripts.Here(ctx, image, n)
	}
	options.Sandboxes, options.Warm = sandboxes.Runtime{Runtime: runtime, Dirs: d}, runtime.Warm
	options.Missing, options.Isolation = runtime.Missing, runtime.Isolation
	if o.live != nil {
		options.Current = currentOptions(o.live)
	}
	options.MaxParallel = maxParallel(options.Sessions)
	options.Project, options.ToolsDir, options.RunnerDir = currentProject(), d.Tools(), p.runnerDir
	options.RunsDir, options.AnswersDir = filepath.Join(d.State, "runs"), d.State
	for _, m := range s.Mounts {
		options.Mounted = append(options.Mounted, m.Target)
	}
	if s.Project == settings.ProjectRead {
		options.Shown = shownProject(s, runtime)
	}
	if o.serves {
		options.SessionsDir = filepath.Join(d.State, "sessions")
	} else {
		// A server of a command ends with it, so that another try would begin anew. Its sessions
		// end with it, too, and need no records.
		options.StartTimeout = time.Hour
	}
	runs := run.New(options)
	a := &app{parts: p, runs: runs, policy: rules, proxy: proxy, images: images, scripts: scripts}
	if o.serves {
		// It lets toolcell approvals answer; without it there are other ways.
		if a.inbox, err = inbox.Listen(inbox.Dir(d.Run), runs.Queue(), rules.StrictApprovals, o.log); err != nil {
			o.log.Warn("questions of this process cannot be answered with toolcell approvals", "err", err)
			a.inbox = nil
		}
	}
	return a, nil
}

// currentOptions returns what gives a run the settings that the user has changed since the start.
func currentOptions(live *settings.Live) func(run.Options) (run.Options, string) {
	return func(o run.Options) (run.Options, string) {
		now := live.Now().Runs
		o.Timeout, o.MaxTimeout, o.Limits, o.Preload = now.Timeout, now.MaxTimeout, now.Limits, now.Preload
		o.MaxOutput, o.Pictures = now.MaxOutput, now.Pictures
		return o, live.Note()
	}
}

// shownProject returns the folders of clients, which code can read. Without a runtime it is not
// said what keeps code from that.
func shownProject(s settings.Settings, runtime *oci.Runtime) *project.Projects {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // it was removed: the first run says so
	}
	o := project.Options{Dir: dir, Check: s.CheckProject}
	if runtime != nil {
		o.Denied = runtime.DeniedProject
	}
	return project.New(o)
}

// proxyOptions returns the options of the proxy for the user's servers.
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
	a.scripts.Close()
	return errors.Join(err, a.proxy.Close(), a.parts.Close())
}

// openStore opens the store of images.
func openStore(s settings.Settings, log *slog.Logger) (*rootfs.Store, error) {
	s.Puller.Log = log
	store, err := rootfs.Open(filepath.Join(s.Dirs.Cache, "images"), s.Puller)
	if err != nil {
		return nil, s.Dirs.Explain(err)
	}
	store.Policy, store.MaxBytes, store.MaxEntries = s.Pull, s.Puller.MaxArchive, s.MaxFiles
	return store, nil
}

// openPackages opens the store of packages.
func openPackages(s settings.Settings) *packages.Store {
	return packages.Open(filepath.Join(s.Dirs.Cache, "packages"), s.UV)
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
// nothing with -q, and structured lines with --log-level.
func shellLogger(o Options) *slog.Logger {
	switch {
	case o.Quiet:
		return slog.New(slog.DiscardHandler)
	case o.Settings.Typed("log-level"):
		return newLogger(o.Settings, o.Err)
	}
	return slog.New(&console.NoteHandler{Out: o.Err})
}

// newLogger writes structured lines to stderr: stdout is the protocol.
func newLogger(s settings.Settings, w io.Writer) *slog.Logger {
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.LogLevel}))
	keepLog(log)
	if s.Runtime != "auto" && s.Runtime != "" {
		log.Warn("the setting runtime is not needed: toolcell starts its sandboxes itself", "value", s.Runtime)
	}
	return log
}
