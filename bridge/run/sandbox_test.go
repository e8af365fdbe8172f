package run

import (
	"context"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/oci"
)

// hostSandboxes run the host's python3.
type hostSandboxes struct{ bridgetest.HostSandboxes }

func (h hostSandboxes) Start(ctx context.Context, p oci.Process) (Sandbox, error) {
	return h.HostSandboxes.Start(ctx, p)
}

// A startFunc is Sandboxes that are one function.
type startFunc func(ctx context.Context, p oci.Process) (Sandbox, error)

func (f startFunc) Start(ctx context.Context, p oci.Process) (Sandbox, error) { return f(ctx, p) }

// exitsAfter starts sandboxes without a runner that end when run returns.
func exitsAfter(run func(p oci.Process) oci.Exit) Sandboxes {
	return startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
		return bridgetest.StartFake(ctx, func(context.Context, <-chan int) (oci.Exit, error) {
			if p.Stdin != nil {
				defer p.Stdin.Close()
			}
			defer p.Stdout.Close()
			defer p.Stderr.Close()
			return run(p), nil
		}), nil
	})
}

// withExit changes how the sandboxes of inner end.
func withExit(inner Sandboxes, change func(exit oci.Exit, err error) (oci.Exit, error)) Sandboxes {
	return startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
		sb, err := inner.Start(ctx, p)
		return changedExit{sb, change}, err
	})
}

type changedExit struct {
	Sandbox
	change func(exit oci.Exit, err error) (oci.Exit, error)
}

func (c changedExit) Wait() (oci.Exit, error) { return c.change(c.Sandbox.Wait()) }
