// Command pack makes what a release is published as from binaries that are built already:
// wheels, packages for npm, tarballs, a list of components, and the entry of the MCP registry.
//
//	pack version KIND                                  # python, semver, debian
//	pack wheel | npm-platform | tarball | sbom ARCH    # from one binary or tree
//	pack npm | server-json                             # for all architectures
//
// Flags come before these words. The same input gives the same bytes: the times in archives
// are SOURCE_DATE_EPOCH, owners are root and names are sorted. It prints the name of the file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	repository   = "https://github.com/toolcell/toolcell"
	registryName = "io.github.toolcell/toolcell"
	summary      = "All your MCP servers through one tool: Python in a rootless sandbox"
)

// A pack is what packages are made of.
type pack struct {
	version  version
	at       time.Time
	dist     string // the folder for what is made
	binary   []byte
	readme   []byte // with links that work elsewhere
	license  []byte
	licenses []byte // of what is linked in
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	source := flags.String("source", "", "the `version` in the source")
	described := flags.String("described", "", "what git describe --long --dirty `prints`")
	dist := flags.String("dist", "dist", "the `folder` for what is made")
	binary := flags.String("binary", "", "the program, a `file`")
	tree := flags.String("tree", "", "the `folder` with what a tarball has")
	licenses := flags.String("licenses", "", "a `file` with the licenses of what is linked in")
	libraries := flags.String("libraries", "", "C libraries that are linked in: NAME=VERSION,…")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := parseVersion(*source, *described)
	if err != nil {
		return err
	}
	action, argument := flags.Arg(0), flags.Arg(1)
	if action == "version" {
		return printVersion(v, argument)
	}
	p := pack{version: v, dist: *dist}
	if err := p.read(*binary, *licenses); err != nil {
		return err
	}
	var name string
	switch action {
	case "wheel":
		name, err = p.wheel(argument)
	case "npm-platform":
		name, err = p.npmPlatform(argument)
	case "npm":
		name, err = p.npm()
	case "tarball":
		name, err = p.tarball(argument, *tree)
	case "sbom":
		name, err = p.sbom(argument, *binary, *libraries)
	case "server-json":
		name, err = p.serverJSON()
	default:
		err = fmt.Errorf("unknown action %q", action)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, name)
	return err
}

func printVersion(v version, kind string) error {
	text, ok := map[string]string{"python": v.python(), "semver": v.semver(), "debian": v.debian()}[kind]
	if !ok {
		return fmt.Errorf("unknown kind of version %q", kind)
	}
	_, err := fmt.Fprintln(os.Stdout, text)
	return err
}

// read fills p with the contents of files; those without a name stay empty. README and
// LICENSE are those of the working directory.
func (p *pack) read(binary, licenses string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH must be the time of the commit, in seconds")
	}
	p.at = time.Unix(epoch, 0).UTC()
	for _, f := range []struct {
		name string
		into *[]byte
	}{{binary, &p.binary}, {licenses, &p.licenses}, {"README.md", &p.readme}, {"LICENSE", &p.license}} {
		if f.name == "" {
			continue
		}
		if *f.into, err = os.ReadFile(f.name); err != nil {
			return err
		}
	}
	p.readme = p.published(p.readme)
	return nil
}

// source returns the tag or the commit that the documents of this version are at.
func (p pack) source() string {
	if p.version.commits >= 0 {
		return "main"
	}
	return "v" + p.version.semver()
}

// tarball writes what a machine without a package manager that we know installs, and
// returns its name.
func (p pack) tarball(arch, tree string) (string, error) {
	name := fmt.Sprintf("toolcell-%s-linux-%s", p.version.semver(), arch)
	files, err := readTree(tree, name)
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("nothing is in %q", tree)
	}
	return name + ".tar.gz", writeTarball(filepath.Join(p.dist, name+".tar.gz"), files, p.at)
}
