package sandboxes

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/sandboxed"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/commandline"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs/npm"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/pypi"
	"github.com/toolcell/toolcell/rootfs/runtimes"
)

// Servers makes ready what the commands of MCP servers need in their sandboxes: an image, a runtime, and
// packages in versions that stay.
type Servers struct {
	Images   *Images // which show no folders of the host
	Packages *Packages
	NPM      *npm.Store
	Policy   *policy.Policy
	Locks    func(server string) string // the folder of a server's locks
}

// A serverCommand is what a server's entry starts, on its image.
type serverCommand struct {
	*Servers
	server config.Server
	box    *policy.Sandbox
	line   commandline.Line
	image  run.Image
	rules  *policy.Enforcer
}

// Prepare makes the command of a server ready, and fetches what is not here.
func (s *Servers) Prepare(ctx context.Context, server config.Server, box *policy.Sandbox) (*sandboxed.Prepared, error) {
	c, err := s.read(ctx, server, box)
	if err != nil {
		return nil, err
	}
	p := &sandboxed.Prepared{Root: c.image.Root, Env: c.image.Env}
	switch c.line.Kind {
	case commandline.NPM:
		err = c.npm(ctx, p)
	case commandline.PyPI:
		err = c.pypi(ctx, p)
	case commandline.Node:
		if err = c.node(ctx, p); err == nil {
			p.Args = append([]string{runtimes.NodeInside}, c.line.Args...)
		}
	case commandline.Python:
		p.Args = append([]string{c.image.Python}, c.line.Args...)
	case commandline.Command:
		p.Args = append([]string{c.line.Program}, c.line.Args...)
	}
	return p, err
}

// read reads the command of an entry, and makes its image ready.
func (s *Servers) read(ctx context.Context, server config.Server, box *policy.Sandbox) (*serverCommand, error) {
	line, err := commandline.Parse(server.Command, server.Args)
	if err != nil {
		return nil, err
	}
	images := s.Images
	if box.Image != "" {
		images = &Images{Store: images.Store, Ref: box.Image, Named: true, Runner: images.Runner, Dirs: images.Dirs, Background: images.Background}
	}
	image, err := images.Get(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &serverCommand{s, server, box, line, image, s.Policy.NewEnforcer()}, nil
}

// request returns what a request for Python packages says of the image and the policy.
func (c *serverCommand) request(ctx context.Context) (packages.Request, error) {
	grant, err := c.rules.GrantPackages(c.line.PyPI)
	if err == nil && len(grant.Ask) > 0 {
		err = fmt.Errorf("%s; a server's packages cannot be asked about: add them to [packages] allow", strings.Join(grant.Ask, "; "))
	}
	if err != nil {
		return packages.Request{}, err
	}
	return c.Packages.request(ctx, c.image, run.Needs{Grant: grant})
}

// pypi makes packages of the Python index ready.
func (c *serverCommand) pypi(ctx context.Context, p *sandboxed.Prepared) error {
	r, err := c.request(ctx)
	if err != nil {
		return err
	}
	installed, err := c.pythonServer().Ensure(ctx, c.Packages.Store, r, nil)
	if err != nil {
		return err
	}
	if c.Packages.Background != nil && c.Packages.Store.NeedsBytecode(installed.Set) {
		c.Packages.compileLater(c.image.Name, installed.Set.ID)
	}
	p.Binds = append(p.Binds, spec.Bind{Source: installed.Set.Dir, Target: packages.Target})
	p.Args = installed.Command(c.image.Python, c.line.Args)
	if path := installed.PythonPath(); path != "" {
		p.Env = append(p.Env, "PYTHONPATH="+path)
	}
	return nil
}

func (c *serverCommand) pythonServer() pypi.Server {
	return pypi.Server{Name: c.server.Name, Dir: c.Locks(c.server.Name), Requirements: c.line.PyPI, Program: c.line.Program, Python: c.line.Python}
}

// node adds Node with npm.
func (c *serverCommand) node(ctx context.Context, p *sandboxed.Prepared) error {
	c.line.PyPI = nil
	r, err := c.request(ctx)
	if err != nil {
		return err
	}
	node, err := runtimes.EnsureNode(ctx, c.Packages.Store, r, nil)
	if err != nil {
		return err
	}
	for _, b := range node.Binds() {
		p.Binds = append(p.Binds, spec.Bind(b))
	}
	p.Path = append(p.Path, node.Path())
	return nil
}

// npmTarget is where a server sees its npm packages.
const npmTarget = spec.OwnDir + "/npm"

// npm makes packages of the npm registry ready, and Node.
func (c *serverCommand) npm(ctx context.Context, p *sandboxed.Prepared) error {
	if err := c.node(ctx, p); err != nil {
		return err
	}
	server, r, err := c.npmServer(p.Binds)
	if err != nil {
		return err
	}
	layer, err := server.Ensure(ctx, c.NPM, r, nil)
	if err != nil {
		return err
	}
	file, err := npm.Bin(layer.Dir, c.line.NPM[0].Name, c.line.Program)
	if err != nil {
		return fmt.Errorf("looking for the program of the server %q: %w", text.OneLine(c.server.Name, 80), err)
	}
	// The file is found in the layer, not in what scripts have made of it, which is theirs.
	p.Args = append([]string{runtimes.NodeInside, filepath.Join(npmTarget, file)}, c.line.Args...)
	if len(layer.Scripts) > 0 && c.box.InstallRules() != "" {
		p.Install = c.installOf(layer, server.Tool, r.Platform)
		return nil
	}
	p.Unrun = layer.Scripts
	p.Binds = append(p.Binds, spec.Bind{Source: layer.Dir, Target: npmTarget})
	return nil
}

// layerTarget is where install scripts find the packages, to copy them.
const layerTarget = spec.OwnDir + "/layer"

// installOf returns what runs the install scripts of a layer. They run again when they may reach other
// hosts, since some do with less what they can, or when what they compile for is another.
func (c *serverCommand) installOf(layer *npm.Layer, tool npm.Tool, platform npm.Platform) *sandboxed.Install {
	return &sandboxed.Install{
		ID:     fmt.Sprintf("%s %s %s %q %s", layer.ID, runtimes.NodeVersion, platform, c.box.Image, c.box.InstallRules()),
		Of:     text.Bound(strings.Join(layer.Scripts, ", "), 300),
		Args:   tool.RunScripts(layer, layerTarget),
		Binds:  []spec.Bind{{Source: layer.Dir, Target: layerTarget}},
		Target: npmTarget,
	}
}

// npmServer returns the server's packages, and what a request for them says. node are the binds of Node.
func (c *serverCommand) npmServer(node []spec.Bind) (npm.Server, npm.Request, error) {
	s := npm.Server{Name: c.server.Name, Dir: c.Locks(c.server.Name)}
	var names []string
	for _, p := range c.line.NPM {
		names, s.Specs = append(names, p.Name), append(s.Specs, p.String())
	}
	grant, err := c.rules.GrantNPM(names)
	if err != nil {
		return s, npm.Request{}, err
	}
	if grant.ExcludeNewer > 0 {
		s.Before = time.Now().Add(-grant.ExcludeNewer)
	}
	inSandbox := runIn(c.Packages.Sandboxes, c.image.Root, c.Packages.Limits)
	s.Tool = npm.Tool{Node: runtimes.NodeInside, CLI: runtimes.NPMInside, Run: func(ctx context.Context, run packages.Command) (packages.Output, error) {
		run.Files = maps.Clone(run.Files)
		if run.Files == nil {
			run.Files = map[string]string{}
		}
		for _, b := range node {
			run.Files[b.Target] = b.Source
		}
		return inSandbox(ctx, run)
	}}
	return s, npm.Request{
		Registry: grant.Registry, Files: grant.Files, Credential: (*packages.Credential)(grant.Credential),
		Platform: npm.ThisPlatform(libcOf(c.image.Root)), MaxBytes: grant.MaxBytes, MaxCount: grant.MaxCount, MaxTime: grant.MaxTime,
		Check: grant.Check, Offline: c.Packages.Offline,
	}, nil
}

// libcOf returns the C library of an image, in npm's words.
func libcOf(root spec.Root) string {
	places := []string{filepath.Join(root.Dir, "lib")}
	for _, b := range root.Binds { // the host's own
		places = append(places, b.Source, filepath.Join(b.Source, "lib"))
	}
	for _, place := range places {
		if found, _ := filepath.Glob(filepath.Join(place, "ld-musl-*")); len(found) > 0 {
			return "musl"
		}
	}
	return "glibc"
}
