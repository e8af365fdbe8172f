package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/python"
)

// Work on an image beyond unpacking happens in a separate process, `toolcell
// images refresh`, so that no run waits for it: asking the registry whether a
// tag has moved, and compiling the image's modules, once, or those of packages for it.

// A background does such work for runs: on images and on packages, in one process each at a
// time.
type background struct{ images, packages process }

// newBackground returns one whose processes end when it is closed, unless they are detached.
// They take over the settings that were given as flags; the others are in the environment.
func newBackground(s settings.Settings, log *slog.Logger, detached bool) *background {
	args := append([]string{"images", "refresh"}, s.ForProcess(settings.ForImages)...)
	return &background{
		images:   process{args: args, log: log, detached: detached},
		packages: process{args: args, log: log, detached: detached},
	}
}

// attachedWork and detachedWork return what makes one for an environment.
func attachedWork(log *slog.Logger) func(settings.Settings) *background {
	return func(s settings.Settings) *background { return newBackground(s, log, false) }
}

func detachedWork(log *slog.Logger) func(settings.Settings) *background {
	return func(s settings.Settings) *background { return newBackground(s, log, true) }
}

// Refresh implements sandboxes.Background.
func (b *background) Refresh(ref string, ask bool) {
	var flags []string
	if ask {
		flags = append(flags, "--ask")
	}
	b.images.start(append(flags, "--", absolute(ref))...)
}

// Compile implements sandboxes.Background.
func (b *background) Compile(ref, set string) {
	b.packages.start("--set="+set, "--", absolute(ref))
}

func (b *background) close() {
	b.images.close()
	b.packages.close()
}

// A process is a command that is started for each piece of work, one at a time.
type process struct {
	args     []string // of the command, before what it is about
	detached bool     // it may outlive this process
	log      *slog.Logger

	mu    sync.Mutex
	stdin io.Closer // the process ends when this is closed
	done  chan struct{}
}

// absolute is a reference for a process with another working folder.
func absolute(ref string) string {
	if parsed, err := images.Parse(ref); err == nil && parsed.Local() {
		return parsed.Name // with an absolute path
	}
	return ref
}

// start starts a process unless one is running. A failure is not reported: a later run
// tries again.
func (r *process) start(arguments ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done != nil {
		select {
		case <-r.done:
		default:
			return // one is running
		}
	}
	args := slices.Clone(r.args)
	if !r.detached {
		args = append(args, "--until-eof")
	}
	cmd := exec.Command("/proc/self/exe", append(args, arguments...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it survives the end of the terminal
	var err error
	if !r.detached {
		r.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.log.Debug("not working in the background", "reason", err)
		return
	}
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		defer contain.Recover("waiting for the refresh of an image", nil)
		_ = cmd.Wait()
	}()
}

// close ends the process, unless it may outlive us, and waits for it.
func (r *process) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stdin == nil || r.done == nil {
		return
	}
	r.stdin.Close()
	select {
	case <-r.done:
	case <-time.After(5 * time.Second): // it ends in any case
	}
}

type imagesRefreshOptions struct {
	Options
	Ask      bool   // the registry whether the tag has moved
	Set      string // of packages to compile instead of the image
	UntilEOF bool   // end with standard input
}

func imagesRefreshCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "refresh", Hidden: true, ArgsUsage: "REF",
		Flags: append([]cli.Flag{&cli.BoolFlag{Name: "ask"}, &cli.StringFlag{Name: "set"}, &cli.BoolFlag{Name: "until-eof"}},
			settings.Flags(settings.ForImages...)...),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			return imagesRefresh(c.Context, imagesRefreshOptions{o, c.Bool("ask"), c.String("set"), c.Bool("until-eof")})
		}),
	}
}

func imagesRefresh(ctx context.Context, o imagesRefreshOptions) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.UntilEOF {
		go func() {
			defer contain.Recover("waiting for the end of standard input", nil)
			defer cancel()
			_, _ = io.Copy(io.Discard, o.In)
		}()
	}
	p, err := openParts(o.Settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ref := o.Args[0]
	if o.Ask {
		// If it fails, the present image stays in use.
		if _, err := p.store.Pull(ctx, ref, nil); err != nil && ctx.Err() != nil {
			return err
		}
	}
	p.store.Policy = rootfs.PullNever
	root, err := p.store.Ensure(ctx, ref, nil)
	if err != nil {
		return err
	}
	limits := o.Settings.Runs.Limits
	if o.Set == "" {
		return p.compileImage(ctx, root, limits)
	}
	set, err := p.wheels.Find(o.Set)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, compileTime)
	defer stop()
	return p.compile(ctx, set, sandboxes.SandboxRoot(root), root.Env, limits)
}

// compileTime bounds compiling, far above the time for the largest image.
const compileTime = 20 * time.Minute

// compileImage gives an image bytecode of its modules and of the runner,
// unless it has it.
func (p parts) compileImage(ctx context.Context, root *rootfs.Root, l spec.Limits) error {
	if !root.NeedsBytecode(ctx) && !root.NeedsProgramBytecode(p.runnerDir) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	compile := func(binds ...spec.Bind) python.Run {
		return compilesIn(p.runtime, sandboxes.SandboxRoot(root), root.Env, l, binds...)
	}
	// The runner comes first: it is quick, and every run gains.
	bind := spec.Bind{Source: p.runnerDir, Target: runner.Dir}
	return errors.Join(
		root.AddProgramBytecode(ctx, p.runnerDir, bind.Target, compile(bind)),
		root.AddBytecode(ctx, compile()),
	)
}

// compile gives a set of packages its bytecode, in sandboxes of an image.
func (p parts) compile(ctx context.Context, set *packages.Set, root spec.Root, env []string, l spec.Limits) error {
	bind := spec.Bind{Source: set.Dir, Target: packages.Target}
	return p.wheels.AddBytecode(ctx, set, compilesIn(p.runtime, root, env, l, bind))
}

// compilesIn returns a function that compiles modules in sandboxes of an image.
func compilesIn(runtime *oci.Runtime, root spec.Root, env []string, l spec.Limits, binds ...spec.Bind) python.Run {
	return func(ctx context.Context, args []string, out *os.File) error {
		sb, err := runtime.Start(ctx, oci.Process{
			Root: root, Args: args, Binds: binds, Env: append([]string{"HOME=/workspace"}, env...),
			Limits: spec.Limits{Memory: l.Memory, PIDs: l.PIDs, CPUs: 1}, Stdout: out,
		})
		if err != nil {
			return err
		}
		defer sb.Close()
		exit, err := sb.Wait()
		if err == nil && exit.Code != 0 && ctx.Err() == nil {
			err = fmt.Errorf("the image's Python ended with status %d", exit.Code)
		}
		return err
	}
}
