package commandline

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

const ownRegistry = "packages come from the registry that toolcell is set to"

// npmOptions are those of npm that npx and npm exec take, as far as they are understood
// (docs.npmjs.com, "npm-exec" and "config").
func npmOptions() options {
	return options{"--package": {as: "package", value: true}}.add(
		ignored(false, "-y", "--yes", "-q", "--quiet", "-s", "--silent", "-d", "--verbose", "--prefer-offline", "--prefer-online",
			"--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--ignore-scripts", "--no-save", "--no-color"),
		ignored(true, "--loglevel", "--cache", "--fetch-timeout", "--fetch-retries"),
		refused("it runs a line of a shell", "-c", "--call"),
		refused("it runs only what is installed already", "--no", "--no-yes", "-n", "--no-install", "--offline"),
		refused(ownRegistry, "--registry", "--userconfig", "--globalconfig"),
	)
}

func npxOptions() options {
	return options{"-p": {as: "package", value: true}}.add(npmOptions(),
		ignored(false, "--ignore-existing")) // npm 6 had it, and newer ones pass over it
}

// parseNpx reads [options] [--] SPEC arguments, and with --package COMMAND arguments.
func parseNpx(args []string) (l Line, err error) {
	r, err := npxOptions().read("npx", args)
	if err != nil {
		return l, err
	}
	return npmLine(r)
}

// parseNpm reads exec, which takes its own options everywhere before --.
func parseNpm(args []string) (l Line, err error) {
	r, err := npmOptions().read("npm", args)
	if err != nil {
		return l, err
	}
	if r.ended || len(r.rest) == 0 || r.rest[0] != "exec" && r.rest[0] != "x" {
		return l, refusal{"npm", strings.Join(r.rest[:min(1, len(r.rest))], ""), "only npm exec is"}
	}
	r.program, r.rest = "npm exec", r.rest[1:]
	var words []string
	for {
		if err := r.readOptions(); err != nil {
			return l, err
		}
		if r.ended || len(r.rest) == 0 {
			break
		}
		words, r.rest = append(words, r.rest[0]), r.rest[1:]
	}
	r.rest = append(words, r.rest...)
	return npmLine(r)
}

// parseBunx reads [options] SPEC arguments (bun.sh, "bunx").
func parseBunx(program string, args []string) (l Line, err error) {
	r, err := options{"-p": {as: "package", value: true}, "--package": {as: "package", value: true}}.add(
		ignored(false, "-y", "--yes", "--verbose", "--silent"),
		refused("it runs the server with Bun, and the sandbox has Node", "-b", "--bun"),
		refused("it runs only what is installed already", "--no-install"),
	).read(program, args)
	if err != nil {
		return l, err
	}
	return npmLine(r)
}

// npmLine makes a line of options and what follows them.
func npmLine(r *reader) (l Line, err error) {
	l = Line{Kind: NPM}
	specs := r.given["package"]
	switch {
	case len(r.rest) == 0:
		return Line{}, refusal{r.program, "", "it names no program"}
	case len(specs) == 0:
		specs = r.rest[:1]
	default:
		l.Program = r.rest[0]
		if !npmProgram().MatchString(l.Program) {
			return Line{}, refusal{r.program, l.Program, "with --package it must be a program of the package"}
		}
	}
	l.Args = r.rest[1:]
	if len(specs) > maxPackages {
		return Line{}, refusal{r.program, "--package", fmt.Sprintf("it is there %d times; the most is %d", len(specs), maxPackages)}
	}
	for _, spec := range specs {
		p, err := parseNPMPackage(spec)
		if err != nil {
			return Line{}, refusal{r.program, spec, err.Error()}
		}
		l.NPM = append(l.NPM, p)
	}
	return l, nil
}

var (
	// npmName is the name of a package. Old ones have capital letters. One that begins with a
	// hyphen would be an option.
	npmName    = text.Pattern(`^(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`)
	npmVersion = text.Pattern(`^[A-Za-z0-9^~<>=*|][A-Za-z0-9 ^~<>=*|.+_-]*$`) // a version, a range or a tag
	npmProgram = text.Pattern(`^[A-Za-z0-9@][A-Za-z0-9@._-]{0,199}$`)
)

const (
	maxNPMName    = 214 // as the registry has it
	maxNPMVersion = 200
)

// parseNPMPackage reads NAME, NAME@VERSION and the same with a scope (docs.npmjs.com,
// "package-spec"). A name with a slash and no scope would be a repository of GitHub.
func parseNPMPackage(spec string) (p NPMPackage, err error) {
	if why := notFromARegistry(spec); why != "" {
		return p, notAllowed(why)
	}
	name, version := spec, ""
	if at := strings.LastIndex(spec, "@"); at > 0 {
		name, version = spec[:at], strings.TrimSpace(spec[at+1:])
	}
	switch {
	case len(name) > maxNPMName || !npmName().MatchString(name):
		return p, notAllowed("it is not the name of a package")
	case version != "" && (len(version) > maxNPMVersion || !npmVersion().MatchString(version)):
		return p, notAllowed("what follows the last @ is no version, range or tag")
	}
	return NPMPackage{name, version}, nil
}

// notAllowed is why a package is refused.
type notAllowed string

func (n notAllowed) Error() string { return string(n) }

// notFromARegistry says what a spec names, if that is no package of a registry.
func notFromARegistry(spec string) string {
	lower := strings.ToLower(spec)
	switch {
	case strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") || strings.HasPrefix(spec, "~/") || strings.HasPrefix(lower, "file:"):
		return "it is a path of this machine, and packages come from the registry"
	case strings.Contains(lower, "git+") || strings.Contains(lower, "git:") || strings.Contains(lower, "git@") || strings.HasPrefix(lower, "github:") ||
		strings.HasPrefix(lower, "gitlab:") || strings.HasPrefix(lower, "bitbucket:") || strings.HasPrefix(lower, "gist:"):
		return "it is a repository, whose code no registry has recorded"
	case strings.Contains(spec, "://"):
		return "it is an address, and packages come from the registry"
	case strings.HasSuffix(lower, ".tgz") || strings.HasSuffix(lower, ".tar.gz") || strings.HasSuffix(lower, ".whl"):
		return "it is a file, and packages come from the registry"
	case strings.Contains(lower, "npm:"):
		return "it is an alias: name the package itself"
	case !strings.HasPrefix(spec, "@") && strings.Contains(spec, "/"):
		return "it is a repository, whose code no registry has recorded"
	}
	return ""
}
