package sandboxed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/spec"
)

// rootsTarget is where a server finds the certificates that it trusts.
const rootsTarget = spec.OwnDir + "/roots.pem"

// start starts the process, and lets it begin once its network is there.
func (in *launch) start(prepared *Prepared, server *spec.Server, installed *homes.Installed) (_ *stdio.Launched, err error) {
	p := oci.Process{
		Root: prepared.Root, Binds: prepared.Binds, Args: prepared.Args, Server: server,
		Limits: spec.Limits{Memory: in.box.Memory, PIDs: int64(in.box.PIDs), CPUs: in.box.CPUs},
	}
	if in.server.Project {
		p.FindProject = func(ctx context.Context) (*spec.Project, error) { return in.o.Project(ctx, in.server.DefaultDir) }
	}
	c := &child{box: in.box, installed: installed}
	c.life, c.kill = context.WithCancelCause(context.Background())
	launched := &stdio.Launched{Child: c}
	defer func() {
		if err != nil {
			c.kill(err)
			c.release()
			p.Streams.Close()
			closePipes(launched)
		}
	}()
	if err := openPipes(launched, &p); err != nil {
		return nil, err
	}
	variables, err := in.prepareNetwork(c, launched, &p)
	if err != nil {
		return nil, err
	}
	p.Env = environment(prepared, variables, in.mounts)
	if err := in.begin(c, p); err != nil {
		return nil, err
	}
	in.watchHome(c)
	return launched, nil
}

// begin starts a process in its sandbox, with its network.
func (in *launch) begin(c *child, p oci.Process) (err error) {
	if c.sandbox, err = in.o.Sandboxes.Start(c.life, p); err != nil {
		return err
	}
	if c.access != nil {
		if err := c.access.Serve(c.sandbox); err != nil {
			return fmt.Errorf("making its network: %w", err)
		}
	}
	return c.sandbox.Begin()
}

// prepareNetwork prepares what the server may reach, and returns the environment of its entry with what
// its clients of the network need. Without a network it returns that of the entry.
func (in *launch) prepareNetwork(c *child, launched *stdio.Launched, p *oci.Process) (variables map[string]string, err error) {
	grant, variables, err := in.box.Network(in.server.Env)
	if err != nil || grant == nil {
		return variables, err
	}
	if c.access, err = network.Prepare(grant, network.Server{Section: in.box.Section, RootsFile: rootsTarget}); err != nil {
		return nil, err
	}
	maps.Copy(variables, c.access.Variables())
	launched.Explain = c.access.Explain
	return variables, in.bindRoots(c, p)
}

// bindRoots shows a process the certificates that its network has it trust.
func (in *launch) bindRoots(c *child, p *oci.Process) (err error) {
	if c.roots, err = in.rootsFile(c.access.Roots()); c.roots != "" {
		p.Binds = append(p.Binds, spec.Bind{Source: c.roots, Target: rootsTarget})
	}
	return err
}

// Of the folder that a server has as HOME.
const (
	maxHome   = 2 << 30 // bytes
	homeEvery = 5 * time.Second
)

// watchHome ends a server that fills its HOME, which lasts and takes of the user's disk.
func (in *launch) watchHome(c *child) {
	go func() {
		defer contain.Recover("watching the HOME of a server", c.kill)
		use, err := in.homes.Watch(c.life, in.server.Name, in.maxHome, in.homeEvery)
		switch {
		case c.life.Err() != nil:
		case err != nil:
			c.kill(limitError("was ended, since its HOME could not be measured: " + text.Printable(err.Error(), 300)))
		default:
			c.kill(limitError(fmt.Sprintf("had more in its HOME than the %s that it may have there (%s), and was ended; toolcell servers sandbox %s --empty-home empties it", text.Size(in.maxHome), text.Size(use.Bytes), text.ShellWord(in.server.Name))))
		}
	}()
}

// openPipes opens the pipes of a server, our ends and its own.
func openPipes(ours *stdio.Launched, theirs *oci.Process) error {
	var failed [3]error
	theirs.Stdin, ours.Stdin, failed[0] = os.Pipe()
	var out, errs *os.File
	out, theirs.Stdout, failed[1] = os.Pipe()
	errs, theirs.Stderr, failed[2] = os.Pipe()
	if out != nil {
		ours.Stdout = out // and no nil in an interface
	}
	if errs != nil {
		ours.Stderr = errs
	}
	if err := errors.Join(failed[:]...); err != nil {
		return fmt.Errorf("making the pipes of a server: %w", err)
	}
	return nil
}

func closePipes(l *stdio.Launched) {
	l.Stdin.Close() // which nil allows
	if l.Stdout != nil {
		l.Stdout.Close()
	}
	if l.Stderr != nil {
		l.Stderr.Close()
	}
}
