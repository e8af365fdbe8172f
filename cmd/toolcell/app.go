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

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// mounted returns where in a sandbox the user's files are.
func mounted(mounts []spec.Mount) (targets []string) {
	for _, m := range mounts {
		targets = append(targets, m.Target)
	}
	return targets
}

// project is whose saved tools this process sees.
func project() string {
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
	bridge  *bridge.Server
	policy  *policy.Policy
	runtime *oci.Runtime
	proxy   *mcpproxy.Proxy
	store   *rootfs.Store
	images  *sandboxes.Images
	scripts *sandboxes.Packages
	wheels  *packages.Store
	inbox   *inbox.Server // nil if its questions cannot be asked for
}

// appOptions are what a command decides about the app, beside the settings.
type appOptions struct {
	log          *slog.Logger
	policyLog    *slog.Logger               // of the policy; log if nil
	refreshImage func(ref string, ask bool) // called when there is work to do on the image in the background
	// compilePackages is called when the modules of a set of packages are to be compiled
	// in the background.
	compilePackages func(image, set string)
	servers         *discovered // the user's MCP servers
	serves          bool        // for MCP clients: sessions are recorded
}

// openApp wires everything. Nothing is started or fetched yet.
func openApp(s settings.Settings, o appOptions) (_ *app, err error) {
	defer func() {
		if err != nil {
			o.log.Debug("toolcell cannot work here", "error", doctor.Detail(err))
		}
	}()
	d, err := settings.FindDirs(s.StateDir)
	if err != nil {
		return nil, err
	}
	if err := settings.CheckMounts(s, d); err != nil {
		return nil, err
	}
	store, err := openStore(d, s, o.log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	runnerDir, err := runner.Write(filepath.Join(d.Cache, "runner"))
	if err == nil {
		err = cachedir.CheckOwn(d.Cache, "runner", filepath.Join("runner", filepath.Base(runnerDir)))
	}
	if err != nil {
		return nil, d.Explain(err)
	}
	runtime, err := oci.Open(d.Run, s.UID, s.GID)
	if err != nil {
		return nil, d.Explain(err)
	}
	runtime.Mount(s.Mounts)
	wheelStore, err := openPackages(d, s)
	if err != nil {
		return nil, err
	}
	proxy := mcpproxy.New(o.servers.config, mcpproxy.Options{
		Log: o.log, IdleTimeout: s.IdleTimeout, StartTimeout: s.StartTimeout, ClientVersion: version,
		TokenDir: s.TokenDir(), CatalogDir: s.CatalogDir(), PinDir: s.PinDir(),
	})
	var upstreams hostapi.Upstreams = proxy
	if w := o.servers.watcher; w != nil {
		upstreams = watchedProxy{proxy, w, o.log}
	}
	images := &sandboxes.Images{Store: store, Ref: s.Image, Named: s.ImageNamed, Runner: runnerDir, Dirs: d, Mounts: s.Mounts, Refresh: o.refreshImage}
	scripts := &sandboxes.Packages{Store: wheelStore, Sandboxes: sandboxes.Runtime{Runtime: runtime, Dirs: d}, Limits: s.Limits, Offline: s.Pull == rootfs.PullNever, Compile: o.compilePackages}
	rules := loadPolicy(s, cmp.Or(o.policyLog, o.log))
	warnOfSections(o.log, rules, o.servers.config.Servers)
	server := bridge.New(bridge.Options{
		Rootfs: images.Get,
		Packages: func(ctx context.Context, image bridge.Image, n bridge.Needs, progress func(done, total int64, text string)) (string, error) {
			dir, err := scripts.Get(ctx, image, n, progress)
			return dir, d.Explain(err)
		},
		PackagesHere: func(ctx context.Context, n bridge.Needs) bool {
			image, ok := images.Cached(ctx)
			return ok && scripts.Here(ctx, image, n)
		},
		Cached:      images.Cached,
		Warm:        runtime.Warm,
		Preload:     s.Preload,
		Sandboxes:   sandboxes.Runtime{Runtime: runtime, Dirs: d},
		Upstreams:   upstreams,
		RunnerDir:   runnerDir,
		ToolsDir:    d.Tools(),
		Project:     project(),
		Policy:      rules,
		Mounted:     mounted(s.Mounts),
		RunsDir:     filepath.Join(d.State, "runs"),
		Files:       s.Files,
		Pictures:    s.Pictures,
		Version:     version,
		Timeout:     s.Timeout,
		MaxTimeout:  s.MaxTimeout,
		Limits:      s.Limits,
		MaxParallel: maxParallel(s.Sessions),
		Sessions:    s.Sessions,
		SessionIdle: s.SessionIdle,

		StartPatience: startPatience(o.serves),

		ApprovalTimeout: s.ApprovalTimeout,
		FormTimeout:     s.FormTimeout,

		SessionsDir: sessionsDir(d, o.serves), AnswersDir: d.State,
		Output:    s.Output,
		MaxOutput: s.OutputBytes,
		Missing:   func() []string { return runtime.Missing(s.Limits) },
		Isolation: func() string { return runtime.Isolation(s.Limits) },
		Log:       o.log,
	})
	a := &app{bridge: server, policy: rules, runtime: runtime, proxy: proxy, store: store, images: images, scripts: scripts, wheels: wheelStore}
	if o.serves {
		a.inbox = openInbox(d, server, rules, o.log)
	}
	return a, nil
}

// startPatience is how long a call of code waits for a server that is starting. A server
// of a command ends with it, so that another try would begin anew; serve keeps the usual.
func startPatience(serves bool) time.Duration {
	if serves {
		return 0
	}
	return time.Hour
}

// openInbox lets toolcell approvals answer the questions of a server. Without it they can
// be answered in other ways.
func openInbox(d settings.Dirs, server *bridge.Server, rules *policy.Policy, log *slog.Logger) *inbox.Server {
	in, err := inbox.Listen(inbox.Dir(d.Run), server.Desk(), rules.StrictApprovals, log)
	if err != nil {
		log.Warn("questions of this process cannot be answered with toolcell approvals", "err", err)
		return nil
	}
	return in
}

// sessionsDir returns the folder of records about sessions. The sessions of a
// command end with it and need none.
func sessionsDir(d settings.Dirs, serves bool) string {
	if !serves {
		return ""
	}
	return filepath.Join(d.State, "sessions")
}

// Close ends everything, users before what they use.
func (a *app) Close() (err error) {
	if a.inbox != nil {
		err = a.inbox.Close()
	}
	a.bridge.Close()
	a.scripts.Close()
	return errors.Join(err, a.proxy.Close(), a.runtime.Close(), a.wheels.Close(), a.store.Close())
}

func openStore(d settings.Dirs, s settings.Settings, log *slog.Logger) (*rootfs.Store, error) {
	return openStoreWith(d, s, images.Puller{Log: log})
}

// openStoreWith is openStore with a puller that has more than the settings say, such
// as a login.
func openStoreWith(d settings.Dirs, s settings.Settings, p images.Puller) (*rootfs.Store, error) {
	p.Platform, _ = images.ParsePlatform(s.Platform) // the settings were checked
	p.AuthFile, p.CAFile, p.Mirrors, p.PlainHTTP = s.Registries.AuthFile, s.Registries.CAFile, s.Registries.Mirrors, s.Registries.Plain
	p.MaxArchive = s.MaxImage.Bytes
	store, err := rootfs.Open(filepath.Join(d.Cache, "images"), p)
	if err != nil {
		return nil, d.Explain(err)
	}
	store.Policy, store.MaxBytes, store.MaxEntries = s.Pull, s.MaxImage.Bytes, int(s.MaxImage.Files)
	return store, nil
}

// openPackages opens the store of packages.
func openPackages(d settings.Dirs, s settings.Settings) (*packages.Store, error) {
	store, err := packages.Open(filepath.Join(d.Cache, "packages"), s.UV)
	return store, d.Explain(err)
}

// Descriptors that a sandbox needs while it starts, and that everything else
// needs.
const (
	sandboxFiles = 24
	otherFiles   = 24
)

// maxParallel is the number of concurrent runs, without idle sessions: as many
// as the limit of open files allows, so that further ones wait instead of
// failing.
func maxParallel(sessions int) int {
	const most = 16
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > uint64(otherFiles+(most+sessions)*sandboxFiles) {
		return most
	}
	return max(1, (int(l.Cur)-otherFiles)/sandboxFiles-sessions)
}

// shellLogger returns the log of a command that a user types: warnings are notes, -q
// silences them, and --log-level asks for structured lines.
func shellLogger(c *cli.Context, s settings.Settings, w *os.File) *slog.Logger {
	switch {
	case c.Bool("quiet"):
		return slog.New(slog.DiscardHandler)
	case c.IsSet("log-level") && c.String("log-level") != "":
		return newLogger(s, w)
	}
	return slog.New(console.NewNoteHandler(w))
}

// newLogger writes structured lines to stderr: stdout is the protocol.
func newLogger(s settings.Settings, w io.Writer) *slog.Logger {
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.LogLevel}))
	keepLog(log)
	if s.Runtime != "auto" && s.Runtime != "" {
		log.Warn("MCP_BRIDGE_RUNTIME is not needed: toolcell starts its sandboxes itself", "value", s.Runtime)
	}
	return log
}
