// Package commandline reads the command of a server's entry: which packages it would fetch and
// which program of them it would start.
//
// Programs such as npx and uvx fetch code and run it at once. In a sandbox the two are
// apart, so what they would do is read here, as their documentation says, and done by
// toolcell. An option that would change what runs, and that is not understood, is an error and
// never passed over. Parse is pure: it looks at no file and at no variable. So what npx would
// find on the machine before it asks a registry, such as a project's own node_modules, does
// not count.
package commandline

import (
	"path"
	"slices"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
)

// A Kind says where the program of a server comes from.
type Kind string

// The kinds of commands.
const (
	NPM     Kind = "npm"     // a package of the npm registry
	PyPI    Kind = "pypi"    // a package of the Python index
	Node    Kind = "node"    // a file for Node
	Python  Kind = "python"  // a file or module for Python
	Command Kind = "command" // a program of the image
)

// A Line is what a command line means.
type Line struct {
	Kind Kind
	NPM  []NPMPackage // of NPM, at least one
	// PyPI are the packages of PyPI, at least one. The first is the one that is asked for
	// the program, unless the command names none in particular.
	PyPI []requirement.Requirement
	// Program is, of NPM, one that the packages have; "" is the one that the first package has
	// (its only one, or else the one with the last part of the package's name). Of PyPI it is
	// one that the packages have, or Interpreter. Of Command it is the command, unchanged.
	Program string
	// Args are the program's arguments. Of Node and Python they are all of the interpreter's.
	Args []string
	// Python are the versions of Python that the command asks for.
	Python requirement.Specifier
	// File is what a command of Node or Python runs, as it is written; "" if it is no file.
	File string
}

// Interpreter as the Program of a Line of PyPI is the Python that has the packages.
const Interpreter = "python"

// An NPMPackage is a package of the npm registry.
type NPMPackage struct {
	Name    string // NAME or @SCOPE/NAME
	Version string // a version, a range or a tag; "" is any
}

// String returns NAME or NAME@VERSION.
func (p NPMPackage) String() string {
	if p.Version == "" {
		return p.Name
	}
	return p.Name + "@" + p.Version
}

// maxPackages bounds the packages that a command names.
const maxPackages = 50

// Parse reads the command and arguments of an entry. Its errors say what is not supported and
// what to do about it; what they quote is bounded and printable.
func Parse(command string, args []string) (Line, error) {
	switch name := path.Base(command); {
	case name == "npx":
		return parseNpx(args)
	case name == "npm":
		return parseNpm(args)
	case name == "bunx":
		return parseBunx("bunx", args)
	case name == "bun" && len(args) > 0 && args[0] == "x":
		return parseBunx("bun x", args[1:])
	case name == "uvx":
		return parseUvx("uvx", args)
	case name == "uv":
		return parseUv(args)
	case name == "pipx":
		return parsePipx(args)
	case name == "node" || name == "nodejs":
		return parseNode(args), nil
	case pythonName().MatchString(name):
		return parsePython(command, args)
	}
	return parseCommand(command, args)
}

// unread are commands that fetch code as npx does, but are not read.
var unread = []string{"pnpm", "pnpx", "yarn"}

// containers are commands that start a container.
var containers = []string{"docker", "podman", "nerdctl", "docker-compose", "podman-compose"}

// A HostError says that a command is for the host, whatever its arguments.
type HostError struct{ program string }

// Why says why that is so.
func (e *HostError) Why() string {
	return e.program + " starts a container on the host, and what may do that has all rights there"
}

func (e *HostError) Error() string {
	return e.program + ` is not supported for a server in a sandbox: it starts a container on the host; set sandbox = "off" for the server`
}

func parseCommand(command string, args []string) (l Line, err error) {
	name := path.Base(command)
	switch {
	case slices.Contains(containers, name):
		return l, &HostError{name}
	case slices.Contains(unread, name):
		return l, refusal{name, "", "only npx, npm exec and bunx are read"}
	}
	return Line{Kind: Command, Program: command, Args: args}, nil
}

// A refusal says which part of a command is not supported, and why.
type refusal struct {
	program string
	what    string // an option or a package; "" is the program itself
	why     string // "" is that it is not understood
}

// login is the part of an address that may be a secret.
var login = text.Pattern(`://[^/@]*@`)

func (r refusal) Error() string {
	s := text.OneLine(r.program, 120)
	without := "to start the server in another way"
	if r.what != "" {
		s += " " + text.OneLine(login().ReplaceAllString(r.what, "://…@"), 120)
		without = "to do without it"
	}
	s += " is not supported for a server in a sandbox"
	if r.why != "" {
		s += ": " + r.why
	}
	return s + "; change its command " + without + `, make its program one of an image that you name, or set sandbox = "off" for the server`
}
