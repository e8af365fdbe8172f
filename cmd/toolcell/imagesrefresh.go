package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/image"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/python"
	"github.com/urfave/cli/v2"
)

// Work on an image beyond unpacking happens in a separate process, `toolcell
// images refresh`, so that no run waits for it: asking the registry whether a
// tag has moved, and compiling the image's modules, once.

// A refresher starts that process, one at a time.
type refresher struct {
	args     []string // of `toolcell images refresh`, before the reference
	detached bool     // it may outlive this process
	log      *slog.Logger

	mu    sync.Mutex
	stdin io.Closer // the process ends when this is closed
	done  chan struct{}
}

// newRefresher returns a refresher whose process ends when it is closed. The process
// takes over the settings that were given as flags; the others are in the
// environment.
func newRefresher(c *cli.Context, log *slog.Logger) *refresher {
	args := append([]string{"images", "refresh"}, settings.ForProcess(c, settings.ForImages)...)
	return &refresher{args: args, log: log}
}

// newDetachedRefresher is newRefresher for a process that may outlive this one.
func newDetachedRefresher(c *cli.Context, log *slog.Logger) *refresher {
	r := newRefresher(c, log)
	r.detached = true
	return r
}

// start is for image.Source.Refresh. A failure is not reported: a later run tries
// again.
func (r *refresher) start(ref string, ask bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done != nil {
		select {
		case <-r.done:
		default:
			return // one is running
		}
	}
	if err := r.launch(ref, ask); err != nil {
		r.log.Debug("not refreshing the image", "reason", err)
	}
}

func (r *refresher) launch(ref string, ask bool) error {
	args := append([]string(nil), r.args...)
	if parsed, err := images.Parse(ref); err == nil && parsed.Local() {
		ref = parsed.Name // with an absolute path
	}
	if ask {
		args = append(args, "--ask")
	}
	if !r.detached {
		args = append(args, "--until-eof")
	}
	cmd := exec.Command("/proc/self/exe", append(args, "--", ref)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it survives the end of the terminal
	if !r.detached {
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		r.stdin = in
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	r.done = done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// close ends the process, unless it may outlive us, and waits for it.
func (r *refresher) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stdin == nil {
		return
	}
	r.stdin.Close()
	select {
	case <-r.done:
	case <-time.After(5 * time.Second): // it ends in any case
	}
}

func imagesRefresh(c *cli.Context, s *console.Streams) error {
	if c.NArg() != 1 {
		return console.Usagef("images refresh takes one reference")
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	if c.Bool("until-eof") {
		go func() {
			_, _ = io.Copy(io.Discard, s.In)
			cancel()
		}()
	}
	conf, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return err
	}
	store, err := openStore(d, conf, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer store.Close()
	ref := c.Args().First()
	if c.Bool("ask") {
		// If it fails, the present image stays in use.
		if _, err := store.Pull(ctx, ref, nil); err != nil && ctx.Err() != nil {
			return err
		}
	}
	store.Policy = rootfs.PullNever
	root, err := store.Ensure(ctx, ref, nil)
	if err != nil {
		return err
	}
	return compileModules(ctx, d, conf, root)
}

// compileTime is far beyond what the largest image needs.
const compileTime = 20 * time.Minute

// compileModules gives an image bytecode of its modules and of the runner,
// unless it has it.
func compileModules(ctx context.Context, d settings.Dirs, s settings.Settings, root *rootfs.Root) (err error) {
	runnerDir, err := runner.Write(filepath.Join(d.Cache, "runner"))
	if err != nil {
		return d.Explain(err)
	}
	if !root.NeedsBytecode() && !root.NeedsProgramBytecode(runnerDir) {
		return nil
	}
	runtime, err := oci.Open(d.Run, s.UID, s.GID)
	if err != nil {
		return d.Explain(err)
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	compile := func(binds ...oci.Bind) python.Run {
		return func(ctx context.Context, args []string, out *os.File) error {
			sb, err := runtime.Start(ctx, oci.Process{
				Root: image.SandboxRoot(root), Args: args, Binds: binds, Env: append([]string{"HOME=/workspace"}, root.Env...),
				Limits: oci.Limits{Memory: s.Limits.Memory, PIDs: s.Limits.PIDs, CPUs: 1}, Stdout: out,
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
	// The runner comes first: it is quick, and every run gains.
	bind := oci.Bind{Source: runnerDir, Target: runner.Dir}
	return errors.Join(
		root.AddProgramBytecode(ctx, runnerDir, bind.Target, compile(bind)),
		root.AddBytecode(ctx, compile()),
	)
}
