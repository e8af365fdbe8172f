package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/bridge/sandboxed"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/commandline"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// ErrNoPackages says that a server's command names no packages of a registry.
var ErrNoPackages = errors.New("its command names no packages of npm or PyPI, so toolcell keeps no versions for it")

// A Change is a package in which the versions of a server differ: Old is "" if it is new, New if it is
// gone, and both are alike if its files alone differ.
type Change struct {
	Name string `json:"name"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// An Update is other versions of a server's packages. Nothing changes before Accept.
type Update struct {
	Changes []Change
	Scripts []string // packages with install scripts, which have not run; known of npm alone

	versions interface {
		Accept(ctx context.Context) error
	}
}

// Accept makes them those of the server, from its next start on.
func (u *Update) Accept(ctx context.Context) error { return u.versions.Accept(ctx) }

// Update chooses versions of a server's packages anew. The error is ErrNoPackages if it has none.
func (s *Servers) Update(ctx context.Context, server config.Server, box *policy.Sandbox) (*Update, error) {
	line, err := commandline.Parse(server.Command, server.Args)
	if err != nil {
		return nil, err
	}
	if line.Kind != commandline.NPM && line.Kind != commandline.PyPI {
		return nil, ErrNoPackages // without an image
	}
	c, err := s.read(ctx, server, box)
	if err != nil {
		return nil, err
	}
	if line.Kind == commandline.NPM {
		return c.updateNPM(ctx)
	}
	return c.updatePyPI(ctx)
}

func (c *serverCommand) updateNPM(ctx context.Context) (*Update, error) {
	var node sandboxed.Prepared
	if err := c.node(ctx, &node); err != nil {
		return nil, err
	}
	server, r, err := c.npmServer(node.Binds)
	if err != nil {
		return nil, err
	}
	found, err := server.Update(ctx, r)
	if err != nil {
		return nil, err
	}
	u := &Update{Scripts: found.Scripts, versions: found}
	for _, change := range found.Changes {
		u.Changes = append(u.Changes, Change(change))
	}
	return u, nil
}

func (c *serverCommand) updatePyPI(ctx context.Context) (*Update, error) {
	r, err := c.request(ctx)
	if err != nil {
		return nil, err
	}
	found, err := c.pythonServer().Update(ctx, c.Packages.Store, r)
	if err != nil {
		return nil, err
	}
	u := &Update{versions: found}
	for _, change := range found.Changes {
		u.Changes = append(u.Changes, Change(change))
	}
	return u, nil
}

// A Meaning is what a server's command starts in a sandbox.
type Meaning struct {
	Kind     commandline.Kind `json:"kind"`
	Packages []string         `json:"packages,omitempty"` // that the command names
	Locked   int              `json:"locked,omitempty"`   // packages with versions that stay; 0 before the first start
	Scripts  []string         `json:"scripts,omitempty"`  // packages of those with install scripts, which have not run
}

// String says it in a line.
func (m Meaning) String() string {
	var registry string
	switch m.Kind {
	case commandline.Node:
		return "a file for Node"
	case commandline.Python:
		return "a file or module for Python"
	case commandline.NPM:
		registry = "npm"
	case commandline.PyPI:
		registry = "PyPI"
	default:
		return "a program of the image"
	}
	said := fmt.Sprintf("%s of %s; %s locked", strings.Join(m.Packages, ", "), registry, text.Plural(m.Locked, "package"))
	if len(m.Scripts) > 0 {
		said += "; with install scripts, which have not run: " + strings.Join(m.Scripts, ", ")
	}
	return said
}

// Meaning reads the command of a server. The error is that of a command which cannot run in a sandbox, or
// about its lock.
func (s *Servers) Meaning(ctx context.Context, server config.Server, box *policy.Sandbox) (m Meaning, err error) {
	line, err := commandline.Parse(server.Command, server.Args)
	if err != nil {
		return m, err
	}
	m.Kind = line.Kind
	for _, p := range line.NPM {
		m.Packages = append(m.Packages, p.String())
	}
	for _, p := range line.PyPI {
		m.Packages = append(m.Packages, p.String())
	}
	switch line.Kind {
	case commandline.PyPI:
		c := serverCommand{Servers: s, server: server, line: line}
		m.Locked, err = c.pythonServer().Locked(ctx)
	case commandline.NPM:
		var c *serverCommand
		if c, err = s.read(ctx, server, box); err != nil {
			return m, err
		}
		npmServer, r, errServer := c.npmServer(nil)
		if errServer != nil {
			return m, errServer
		}
		tree, errLock := npmServer.Locked(ctx, r)
		if tree != nil {
			m.Locked, m.Scripts = len(tree.Packages()), tree.InstallScripts()
		}
		err = errLock
	}
	return m, err
}
