package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
)

const (
	ownIndex  = "packages come from the index that the policy sets ([packages] index)"
	ownCutoff = "the policy says how new packages may be ([packages] excludeNewer)"
	ofProject = "it is about a project on this machine, whose packages the sandbox does not have"
)

// uvOptions are those of uv that uvx and uv run take, as far as they are understood
// (docs.astral.sh/uv, "Commands"). Where packages are kept and whether they are fetched again
// is decided here: a server keeps its versions until it is updated.
func uvOptions() options {
	return options{
		"-w": {as: "with", value: true}, "--with": {as: "with", value: true},
		"-p": {as: "python", value: true}, "--python": {as: "python", value: true},
	}.add(
		ignored(false, "-q", "-qq", "--quiet", "-v", "-vv", "--verbose", "-n", "--no-cache", "--no-progress", "--no-config", "--isolated",
			"--managed-python", "--no-managed-python", "--no-python-downloads", "--native-tls", "--system-certs", "--refresh", "-U", "--upgrade",
			"--reinstall", "--no-sources", "--no-build", "--compile-bytecode", "--no-env-file"),
		ignored(true, "--color", "--cache-dir", "--link-mode", "--python-preference", "--refresh-package", "--upgrade-package", "-P", "--reinstall-package"),
		refused(ownIndex, "--index", "--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--index-strategy",
			"--keyring-provider", "--allow-insecure-host"),
		refused(ownCutoff, "--exclude-newer", "--exclude-newer-package"),
		refused("it names a file of packages: write them with --with", "--with-requirements", "-c", "--constraints", "--overrides"),
		refused("it names a file of variables: write them as the server's environment", "--env-file"),
		refused(ofProject, "--directory", "--project", "--with-editable", "--config-file", "--package", "--group", "--extra", "--all-extras", "--locked", "--frozen"),
		refused("only wheels are used, and nothing is built", "--no-binary", "--no-binary-package", "--no-build-isolation", "-b", "--build-constraints"),
		refused("it runs only what is installed already", "--offline"),
	)
}

func uvxOptions() options {
	return options{"--from": {as: "from", value: true}}.add(uvOptions())
}

// parseUvx reads [options] [--] PACKAGE[@VERSION] arguments, and with --from COMMAND arguments.
func parseUvx(program string, args []string) (l Line, err error) {
	r, err := uvxOptions().read(program, args)
	if err != nil {
		return l, err
	}
	return pypiLine(r)
}

// parseUv reads tool run, which is uvx, and run.
func parseUv(args []string) (l Line, err error) {
	r, err := uvOptions().read("uv", args)
	switch {
	case err != nil:
		return l, err
	case len(r.rest) > 1 && r.rest[0] == "tool" && r.rest[1] == "run":
		return parseUvAfter(r, uvxOptions(), "uv tool run", r.rest[2:], pypiLine)
	case len(r.rest) > 0 && r.rest[0] == "run":
		o := uvOptions().add(ignored(false, "--no-project", "--no-sync", "--exact"), refused(ofProject, "-s", "--script", "--no-dev", "--active"))
		return parseUvAfter(r, o.add(options{"-m": {as: "module"}, "--module": {as: "module"}}), "uv run", r.rest[1:], uvRunLine)
	}
	return l, refusal{"uv", strings.Join(r.rest[:min(1, len(r.rest))], ""), "only uv tool run and uv run are"}
}

// parseUvAfter reads the options of a subcommand, behind those before it.
func parseUvAfter(before *reader, o options, program string, args []string, line func(*reader) (Line, error)) (l Line, err error) {
	r, err := o.read(program, args)
	if err != nil {
		return l, err
	}
	for as, values := range before.given {
		r.given[as] = append(values, r.given[as]...)
	}
	return line(r)
}

// uvRunLine reads --with PACKAGE COMMAND arguments. Without --with, the packages are those of
// a project; those of a file are in it.
func uvRunLine(r *reader) (l Line, err error) {
	module := r.given["module"] != nil
	switch {
	case len(r.rest) == 0:
		return l, refusal{r.program, "", "it names no program"}
	case len(r.given["with"]) == 0:
		return l, refusal{r.program, "", "without --with, the packages are those of a project on this machine"}
	case !module && strings.HasSuffix(r.rest[0], ".py"):
		return l, refusal{r.program, r.rest[0], "the file may name packages itself: write --with PACKAGE python FILE"}
	}
	l = Line{Kind: PyPI, Program: r.rest[0], Args: r.rest[1:]}
	if module {
		l.Program, l.Args = Interpreter, append([]string{"-m"}, r.rest...)
	}
	return l.withPyPI(r)
}

func pipxOptions() options {
	return options{
		"--spec": {as: "from", value: true}, "--python": {as: "python", value: true}, "--with": {as: "with", value: true},
	}.add(
		ignored(false, "--no-cache", "--verbose", "-v", "--quiet", "-q", "--no-path-check", "--refresh"),
		ignored(true, "--backend"),
		refused(ownIndex, "--index-url", "-i", "--pip-args"),
		refused(ownCutoff, "--cooldown"),
		refused(ofProject, "--path", "--pypackages", "--editable", "-e", "--system-site-packages"),
	)
}

// parsePipx reads run [options] [--] PACKAGE arguments (pipx.pypa.io, "CLI reference").
func parsePipx(args []string) (l Line, err error) {
	before, err := ignored(false, "--verbose", "-v", "--quiet", "-q").read("pipx", args)
	switch {
	case err != nil:
		return l, err
	case len(before.rest) == 0 || before.rest[0] != "run":
		return l, refusal{"pipx", strings.Join(before.rest[:min(1, len(before.rest))], ""), "only pipx run is"}
	}
	r, err := pipxOptions().read("pipx run", before.rest[1:])
	if err != nil {
		return l, err
	}
	return pypiLine(r)
}

// pypiLine makes a line of options and what follows them.
func pypiLine(r *reader) (l Line, err error) {
	if len(r.rest) == 0 {
		return l, refusal{r.program, "", "it names no program"}
	}
	l = Line{Kind: PyPI, Program: r.rest[0], Args: r.rest[1:]}
	from := l.Program
	if r.given["from"] != nil {
		from = r.last("from")
	}
	switch {
	case !pythonName().MatchString(from):
		wanted, err := parseTool(from)
		if err != nil {
			return Line{}, refusal{r.program, from, err.Error()}
		}
		if r.given["from"] == nil {
			l.Program = packageAsWritten().FindString(from)
		}
		l.PyPI = []requirement.Requirement{wanted}
	case r.given["from"] != nil || r.given["with"] == nil:
		return Line{}, refusal{r.program, from, "it is Python itself, without a package: write python as the command"}
	}
	return l.withPyPI(r)
}

// withPyPI adds what --with and --python say, and checks the program.
func (l Line) withPyPI(r *reader) (_ Line, err error) {
	for _, with := range r.given["with"] {
		for _, line := range splitRequirements(with) {
			more, err := parseTool(line)
			if err != nil {
				return Line{}, refusal{r.program, "--with " + line, err.Error()}
			}
			if l.PyPI = append(l.PyPI, more); len(l.PyPI) > maxPackages {
				return Line{}, refusal{r.program, "--with", fmt.Sprintf("it names more than %d packages", maxPackages)}
			}
		}
	}
	if version := r.last("python"); version != "" {
		if l.Python, err = pythonVersions(version); err != nil {
			return Line{}, refusal{r.program, "--python " + version, err.Error()}
		}
	}
	switch {
	case pythonName().MatchString(l.Program):
		if l.Python.String() == "" {
			l.Python = versionsOfName(l.Program)
		}
		l.Program = Interpreter
	case !pypiProgram().MatchString(l.Program):
		return Line{}, refusal{r.program, l.Program, "it must be a program of the packages"}
	}
	return l, nil
}

// packageAsWritten is the name of a package at the beginning of what is asked for. Its program
// has the same name letter by letter, such as awslabs.core-mcp-server, and not its one form.
var packageAsWritten = text.Pattern(`^[A-Za-z0-9._-]+`)

var pypiProgram = text.Pattern(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$`)

// parseTool reads PACKAGE, PACKAGE[EXTRAS], either with @VERSION or @latest, or a requirement.
// The latest version is that of the time at which the server is first started or is updated.
func parseTool(s string) (r requirement.Requirement, err error) {
	if why := notFromARegistry(s); why != "" {
		return r, errors.New(why)
	}
	name, version, has := strings.Cut(s, "@")
	if !has {
		return requirement.Parse(s)
	}
	if r, err = requirement.Parse(name); err != nil {
		return r, err
	}
	if r.Specifier.String() != "" || r.Marker != "" {
		return r, errors.New("it has a version before its @ and one behind")
	}
	if version = strings.TrimSpace(version); version == "latest" {
		return r, nil
	}
	if _, err := requirement.ParseVersion(version); err != nil {
		return r, errors.New("what follows its @ is neither a version nor latest; ranges are written as --from 'PACKAGE>=1'")
	}
	r.Specifier, err = requirement.ParseSpecifier("==" + version)
	return r, err
}

// splitRequirements divides a list of requirements at its commas: not at those of extras, and
// not at those of versions, behind which no name begins.
func splitRequirements(s string) (all []string) {
	inside, begin := false, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case c == ',' && !inside:
			if rest := strings.TrimLeft(s[i+1:], " "); rest != "" && strings.IndexByte("<>=!~", rest[0]) < 0 {
				all, begin = append(all, s[begin:i]), i+1
			}
		}
	}
	return append(all, s[begin:])
}

var (
	pythonName     = text.Pattern(`^python(?:3(?:\.\d{1,2})?)?$`)
	pythonSelector = text.Pattern(`^(?:cpython|python)?@?(3(?:\.\d{1,3}){0,2})$`)
)

// pythonVersions reads what --python takes: 3, 3.12, 3.12.4, python3.12 or a specifier.
func pythonVersions(s string) (requirement.Specifier, error) {
	if found := pythonSelector().FindStringSubmatch(s); found != nil {
		if strings.Count(found[1], ".") == 2 {
			return requirement.ParseSpecifier("==" + found[1])
		}
		return requirement.ParseSpecifier("==" + found[1] + ".*")
	}
	if strings.IndexAny(s, "<>=!~") != 0 {
		return requirement.Specifier{}, errors.New("only versions such as 3.12 and >=3.11 are read")
	}
	return requirement.ParseSpecifier(s)
}

// versionsOfName returns the versions that a name such as python3.12 stands for; of python3
// and python those are any.
func versionsOfName(name string) (s requirement.Specifier) {
	if version := strings.TrimPrefix(name, "python"); strings.Contains(version, ".") {
		s, _ = pythonVersions(version) // which the name's pattern has checked
	}
	return s
}
