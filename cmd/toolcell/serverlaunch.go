package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/toolcell/toolcell/bridge/sandboxed"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rights"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/npm"
)

// A serverLauncher starts those of the user's servers in sandboxes that the policy wants there. What it
// needs for that is opened with the first of them.
type serverLauncher struct {
	settings settings.Settings
	policy   *policy.Policy
	rights   rights.Store
	log      *slog.Logger
	unusable error // the settings, so that nothing starts

	mu     sync.Mutex
	opened *serverParts
}

// serverParts are what sandboxes of servers need: they show no folders of the host's that code is shown.
type serverParts struct {
	parts
	npm      *npm.Store
	servers  *sandboxes.Servers
	launcher *sandboxed.Launcher
	work     *background
}

func newServerLauncher(s settings.Settings, p *policy.Policy, log *slog.Logger) *serverLauncher {
	return &serverLauncher{settings: s, policy: p, rights: rights.Open(s.Dirs.Rights()), log: log}
}

// A serversProxy is a proxy of a command, with what its servers start by.
type serversProxy struct {
	*mcpproxy.Proxy
	launcher *serverLauncher
}

// openProxy makes a proxy for servers.
func openProxy(c config.Config, s settings.Settings, log *slog.Logger) serversProxy {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	l := launcherFor(s, log)
	o := proxyOptions(s, log)
	l.give(&o)
	return serversProxy{mcpproxy.New(c, o), l}
}

// launcherFor returns what starts servers for a command. What starts in a sandbox, and in which, does not
// depend on the flags that the command has.
func launcherFor(s settings.Settings, log *slog.Logger) *serverLauncher {
	full, err := s.With(settings.ForServers)
	l := newServerLauncher(full, loadPolicy(full, log), log)
	l.unusable = err
	return l
}

// Close ends the servers, and then closes what they have used.
func (p serversProxy) Close() error { return errors.Join(p.Proxy.Close(), p.launcher.Close()) }

// give has a proxy start servers by it.
func (l *serverLauncher) give(o *mcpproxy.Options) { o.Launch, o.Sandboxed = l.launch, l.sandboxed }

// box returns what the policy says of a server's sandbox.
func (l *serverLauncher) box(s config.Server) (*policy.Sandbox, error) {
	return l.boxBy(l.policy.NewEnforcer(), s)
}

func (l *serverLauncher) boxBy(rules *policy.Enforcer, s config.Server) (*policy.Sandbox, error) {
	if l.unusable != nil {
		return nil, l.unusable
	}
	return rules.Sandbox(policy.Server{Name: s.Name, Alias: s.Alias})
}

// sandboxed returns what reports whether a server starts in a sandbox, if it starts, by the rules as they
// are now: they are looked up once for all servers of a list, which each run needs.
func (l *serverLauncher) sandboxed() func(config.Server) bool {
	rules := l.policy.NewEnforcer()
	return func(s config.Server) bool {
		box, err := l.boxBy(rules, s)
		return err == nil && box.On(s.Project)
	}
}

// launch returns what starts a server in a sandbox; nil if it starts on the host.
func (l *serverLauncher) launch(s config.Server) (stdio.Launcher, error) {
	box, err := l.box(s)
	if err != nil {
		return nil, err
	}
	if err := l.rights.Check(s, box); err != nil {
		return nil, err
	}
	if !box.On(s.Project) {
		return nil, nil
	}
	return l.in(box), nil
}

// in returns what starts a server in a sandbox.
func (l *serverLauncher) in(box *policy.Sandbox) stdio.Launcher {
	return func(ctx context.Context, s config.Server) (*stdio.Launched, error) {
		opened, err := l.open()
		if err != nil {
			return nil, &stdio.CommandError{Err: err}
		}
		return opened.launcher.Launch(ctx, s, box)
	}
}

// open opens what sandboxes of servers need.
func (l *serverLauncher) open() (*serverParts, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened != nil {
		return l.opened, nil
	}
	s := l.settings
	s.Mounts = nil
	p, err := openParts(s, l.log)
	if err != nil {
		return nil, err
	}
	o := &serverParts{parts: p, npm: openNPM(s)}
	images, packages := p.image(s), p.packages(s)
	o.work = detachedWork(l.log)(s)
	images.Background, packages.Background = o.work, o.work
	packages.Offline = s.Pull == rootfs.PullNever
	o.servers = &sandboxes.Servers{Images: images, Packages: packages, NPM: o.npm, Policy: l.policy, Locks: s.Dirs.Versions}
	projects := shownProject(s, p.runtime)
	o.launcher = sandboxed.New(sandboxed.Options{
		Project: func(ctx context.Context, dir string) (*spec.Project, error) {
			real, err := projects.Resolve(dir)
			if err != nil {
				return nil, err
			}
			return projects.Find(ctx, real)
		},
		Sandboxes: p.runtime, Prepare: o.servers.Prepare, Dir: p.runtime.StateDir, Written: l.written, Log: l.log,
		Homes: func(mounts []spec.Mount) (*homes.Store, error) {
			h, err := p.runtime.HostOfServers(mounts)
			return homes.Open(s.Dirs.Homes(), h), err
		},
	})
	l.opened = o
	return o, nil
}

// written returns the folders of this host that code or any server may write to.
func (l *serverLauncher) written() []string {
	all := l.policy.NewEnforcer().WrittenMounts()
	for _, m := range l.settings.Mounts {
		if m.Writable {
			all = append(all, m.Source)
		}
	}
	return all
}

// Close closes what was opened. No server may be running.
func (l *serverLauncher) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		return nil
	}
	l.opened.servers.Packages.Close()
	l.opened.work.close()
	return errors.Join(l.opened.npm.Close(), l.opened.Close())
}
