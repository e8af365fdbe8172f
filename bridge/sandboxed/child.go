package sandboxed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/homes"
)

// A child is a server in its sandbox. It implements stdio.Child.
type child struct {
	box    *policy.Sandbox
	life   context.Context // of the sandbox
	kill   context.CancelCauseFunc
	access *network.ServerAccess // nil is none
	roots  string                // file of the host; "" is none

	installed *homes.Installed // that it uses; nil is none

	sandbox *oci.Sandbox // nil until it has started
	exit    oci.Exit     // known once it has ended
	err     error
}

// Await implements stdio.Child.
func (c *child) Await() { c.exit, c.err = c.sandbox.Wait() }

// Signal implements stdio.Child. SIGTERM goes to the first process alone: when that has ended, nothing
// is left of the sandbox.
func (c *child) Signal(sig unix.Signal) {
	if sig == unix.SIGKILL {
		c.kill(errUnwanted)
		return
	}
	c.sandbox.Signal(sig)
}

var errUnwanted = errors.New("the server is not wanted any more")

// A limitError ends a server that has taken too much, in the words of Reap.
type limitError string

func (e limitError) Error() string { return string(e) }

// Reap implements stdio.Child.
func (c *child) Reap() string {
	why := context.Cause(c.life)
	c.kill(errUnwanted)
	c.release()
	return c.how(why)
}

// how says how the server has ended. Why is the cause of the end of its life, nil if that goes on.
func (c *child) how(why error) string {
	over, limited := errors.AsType[limitError](why)
	switch {
	case limited:
		return over.Error()
	case c.err != nil:
		return "ended in its sandbox: " + text.Printable(c.err.Error(), 500)
	case c.exit.OOM:
		return fmt.Sprintf("used more than its %s of memory and was ended; memory in its section of the policy gives it more", text.Size(c.box.Memory))
	case c.exit.Signal != 0:
		return "signal: " + c.exit.Signal.String()
	case c.exit.Code > maxStatus:
		return fmt.Sprintf("exit status %d (%s)", c.exit.Code, unix.Signal(c.exit.Code-maxStatus))
	case c.exit.PIDs && c.exit.Code != 0:
		return fmt.Sprintf("exit status %d, after it had all of its %d processes and threads; pids in its section of the policy gives it more", c.exit.Code, c.box.PIDs)
	}
	return fmt.Sprintf("exit status %d", c.exit.Code)
}

// maxStatus is the last exit status that does not stand for a signal, as shells have it.
const maxStatus = 128

// A Refusal is a host that the sandbox of a server did not let it reach. The server chose what it says.
type Refusal struct {
	Host   string // with its port, unless only its name was looked up; "?" if it is not known
	Reason string
	// Unlisted says that the host is not in the section of the server, which could allow it.
	Unlisted bool
}

// Refused returns the hosts that the sandbox of a server has refused by now, each once, the latest first
// and fifty at most. There are none of a server that was started in another way, or that has no network.
func Refused(l *stdio.Launched) (all []Refusal) {
	c, ok := l.Child.(*child)
	if !ok || c.access == nil {
		return nil
	}
	for _, r := range c.access.RefusedSince(time.Time{}) {
		host := network.HostPort(r)
		if !r.Failed && !slices.ContainsFunc(all, func(known Refusal) bool { return known.Host == host }) {
			all = append(all, Refusal{host, r.Reason, c.access.IsUnlisted(r)})
		}
	}
	return all
}

// release gives back what the server has had.
func (c *child) release() {
	if c.access != nil {
		c.access.Close()
	}
	if c.sandbox != nil {
		_ = c.sandbox.Close()
	}
	if c.roots != "" {
		os.Remove(c.roots)
	}
	c.installed.Release()
}
