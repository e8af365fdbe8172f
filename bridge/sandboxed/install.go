package sandboxed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/spec"
)

// An Install is what has to run once before a server can start: install scripts of its packages, which
// are as little to be trusted as the server. They run in a sandbox of their own, with what the section
// gives for that, on a HOME of their own, and know nothing of the entry. The server sees the HOME that
// they leave read-only.
type Install struct {
	ID     string      // names what is installed, with all that it depends on
	Of     string      // whose scripts these are, for errors
	Args   []string    // the command
	Binds  []spec.Bind // more than what the server has
	Target string      // where the server sees the HOME of the command: below spec.OwnDir
}

const (
	maxInstallTime = 10 * time.Minute
	maxInstalled   = 2 << 30 // bytes
)

// install runs what has to run before, unless that was done, and shows it to the server.
func (in *launch) install(ctx context.Context, p *Prepared) (*homes.Installed, error) {
	if len(p.Unrun) > 0 {
		in.o.Log.Info("install scripts of a server's packages have not run: the policy has no install for it", "server", in.server.Name, "packages", p.Unrun)
	}
	if p.Install == nil {
		return nil, nil
	}
	limit := homes.Limit{Bytes: in.maxInstalled, Every: in.homeEvery}
	done, err := in.homes.EnsureInstalled(ctx, in.server.Name, p.Install.ID, limit, func(ctx context.Context, home homes.Home) error {
		in.o.Log.Info("running install scripts of a server's packages", "server", in.server.Name)
		return in.runInstall(ctx, p, home)
	})
	if err != nil {
		return nil, fmt.Errorf("running the install scripts of %s: %w", p.Install.Of, err)
	}
	p.Binds = append(p.Binds, spec.Bind{Source: done.Dir, Target: p.Install.Target})
	return done, nil
}

// runInstall runs the command to its end.
func (in *launch) runInstall(ctx context.Context, prepared *Prepared, home homes.Home) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.maxInstallTime, fmt.Errorf("they took longer than %s", text.Duration(in.maxInstallTime)))
	defer cancel()
	p := oci.Process{
		Root: prepared.Root, Binds: slices.Concat(prepared.Binds, prepared.Install.Binds), Args: prepared.Install.Args,
		Server: &spec.Server{Home: home.Dir, UID: home.UID, Section: in.box.Section},
		Limits: spec.Limits{Memory: in.box.Memory, PIDs: int64(in.box.PIDs), CPUs: in.box.CPUs},
	}
	c := &child{box: in.box}
	c.life, c.kill = context.WithCancelCause(ctx)
	defer func() {
		c.kill(errUnwanted)
		c.release()
		p.Streams.Close()
	}()
	variables, err := in.prepareInstallNetwork(c, &p)
	if err != nil {
		return err
	}
	p.Env = environment(prepared, variables, nil)
	said, err := captureTail(&p)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := in.begin(c, p); err != nil {
		return err
	}
	c.Await()
	return in.installed(c, said(), began)
}

// prepareInstallNetwork prepares what scripts may reach, and returns what their clients need for that.
func (in *launch) prepareInstallNetwork(c *child, p *oci.Process) (variables map[string]string, err error) {
	grant, err := in.box.Install()
	if err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, errors.New("the policy does not let them run")
	}
	if c.access, err = network.Prepare(grant, network.Server{Section: in.box.Section, Key: "install", RootsFile: rootsTarget}); err != nil {
		return nil, err
	}
	return c.access.Variables(), in.bindRoots(c, p)
}

// installed says how scripts have ended.
func (in *launch) installed(c *child, said string, began time.Time) error {
	switch why := context.Cause(c.life); {
	case why != nil:
		return why
	case c.err == nil && c.exit.Code == 0 && c.exit.Signal == 0 && !c.exit.OOM:
		return nil
	}
	all := []string{c.how(nil), text.Printable(c.access.Explain(began), 1000), said}
	return errors.New(strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; "))
}

const (
	maxTail      = 16 << 10 // bytes of the output that are kept
	maxTailLines = 8
	maxTailLine  = 300 // bytes
)

// captureTail makes a pipe for the standard error of a process, and returns a function that waits for
// its end and returns the last lines, as one.
func captureTail(p *oci.Process) (last func() string, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the pipe of an installation: %w", err)
	}
	p.Stderr = theirs
	tail := make(chan string, 1)
	kept, n := make([]byte, 2*maxTail), 0
	go func() {
		defer func() { tail <- string(kept[max(0, n-maxTail):n]) }()
		defer contain.Recover("reading the output of an installation", nil)
		defer ours.Close()
		for {
			if n == len(kept) {
				n = copy(kept, kept[maxTail:])
			}
			more, err := ours.Read(kept[n:])
			n += more
			if err != nil {
				return
			}
		}
	}()
	return func() string { return lastLines(<-tail) }, nil
}

// lastLines returns the last lines of an output that say something, as one line.
func lastLines(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = text.Printable(text.Clean(strings.TrimSpace(line)), maxTailLine); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-maxTailLines):], "; ")
}
