package hints

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

const (
	cannotInstall = "nothing can be installed in a run: there is no network. " +
		"The user can set TOOLCELL_IMAGE to an image that has the packages"
	noNetwork = "the sandbox has no network, so a retry fails too: call one of the user's MCP servers instead"
)

// installers are programs that would install packages, as commands name them.
const installers = `(?:pip[0-9.]*|pipx|uv|conda|mamba|poetry|easy_install|apt|apt-get|apk|yum|dnf|npm)`

var (
	usesInstaller = text.Pattern(`\b` + installers + `\b`)
	// installFailed finds the ways in which they fail: they are not in the image, or
	// reach no index.
	installFailed = text.Pattern(`^(?:FileNotFoundError: \[Errno 2\] No such file or directory|PermissionError: \[Errno 13\] Permission denied): '(?:[\w./-]*/)?` + installers + `'` +
		`|^(?:subprocess\.)?CalledProcessError: Command '.*\b` + installers + `\b.*\binstall\b.*' returned non-zero` +
		`|(?:^|: )No module named (?:pip|uv|ensurepip|conda)\b` +
		`|^(?:/bin/|/usr/bin/)?(?:sh|bash|ash|dash): (?:line )?(?:\d+: )?` + installers + `: (?:command )?not found` +
		`|^error: externally-managed-environment` +
		`|^ERROR: (?:No matching distribution found for|Could not find a version that satisfies the requirement|Could not install packages due to an OSError)\b`)
)

// installing is the hint for code that would install a package.
func installing(r Case) string {
	if ofSystem().MatchString(r.Code) && !ofPython().MatchString(r.Code) {
		return cannotInstall
	}
	name := "NAME"
	if found := installed().FindStringSubmatch(r.Code); found != nil && !ofFile().MatchString(found[1]) {
		name = cmp.Or(wellKnown().distributions[found[1]], found[1]) // the first if it is how the package is imported
		if !r.knows(name) {
			name = cmp.Or(PackageLike(name), "NAME")
		}
	}
	if r.Packages == nil || !r.Packages(name) {
		return cannotInstall
	}
	return "packages come before the code runs, and not by an installer: " + withHeader(r, name)
}

var (
	// installed finds the first package in a command, also where that is a list. What
	// goes on after the name, as in git+https://…, is an address.
	installed = text.Pattern(`\b(?:install|(?:uv|poetry) add)['"]?(?:[,\s]+['"]?-[\w-]+['"]?)*[,\s(]+['"\[]*([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:[\s'",;)\[\]<>=!~]|$)`)
	// ofFile finds a file in place of a package, as in pip install -r requirements.txt.
	ofFile = text.Pattern(`\.(?:txt|toml|whl|gz|zip)$`)

	// No index of Python packages has those of a system.
	ofSystem = text.Pattern(`\b(?:apt|apt-get|apk|yum|dnf|npm)\b`)
	ofPython = text.Pattern(`\b(?:pip[0-9.]*|pipx|uv|conda|mamba|poetry|easy_install|ensurepip|micropip|piplite)\b`)
)

// withHeader says how code names a package (PEP 723).
func withHeader(r Case, name string) string {
	where := ""
	if r.Session != "" && r.Live != nil && r.Live(r.Session) {
		where = "this session keeps the packages of its first run; in another one, "
	}
	if scriptHeader().MatchString(r.Code) {
		return where + fmt.Sprintf("add %q to the dependencies in the header of the code", name)
	}
	return where + fmt.Sprintf("begin the code with three lines, # /// script, # dependencies = [%q] and # ///", name)
}

var scriptHeader = text.Pattern(`(?m)^# /// script$`)

// installer is for code that tries to install packages, which may fail without an
// exception.
func installer(r Case) string {
	failed := installFailed().MatchString
	if r.Failed && failed(r.Error) || usesInstaller().MatchString(r.Code) && r.printed(failed) {
		return installing(r)
	}
	return ""
}

var (
	// unreachable finds what libraries and programs say of a host that they cannot
	// reach: resolvers of glibc and musl, the kernel, curl, wget, Node.js.
	unreachable = text.Pattern(`Temporary failure in name resolution|Name or service not known|Name does not resolve|No address associated with hostname` +
		`|\[Errno -3\]|Network (?:is )?unreachable|\[Errno 101\]|Could not resolve host|unable to resolve host|EAI_AGAIN|getaddrinfo ENOTFOUND`)
	// noClient finds what Python and shells say if curl or wget is not in the image.
	noClient = text.Pattern(`^FileNotFoundError: \[Errno 2\] No such file or directory: '(?:[\w./-]*/)?(?:curl|wget)'$` +
		`|^(?:/bin/|/usr/bin/)?(?:sh|bash|ash|dash): (?:line )?(?:\d+: )?(?:curl|wget): (?:command )?not found`)
	// usesNetwork finds code that would go to the network by itself, and not through a
	// server.
	usesNetwork = text.Pattern(`(?m)(?:^|[;:])[ \t]*(?:import|from)[ \t]+[\w., \t]{0,200}\b(?:urllib3?|requests|http|httplib2|httpx|aiohttp|socket|websockets?|` +
		`ftplib|smtplib|poplib|imaplib|telnetlib|paramiko|xmlrpc|pycurl|ssl)\b|\basyncio\.open_connection\b|\b(?:curl|wget|ssh|ping|node)\b`)
)

// network is for code that needs the network and has none; of one that reaches some hosts the
// result says more (package network). Servers of the user's have one, and
// may fail to reach something themselves: their errors are left out.
func network(r Case) string {
	if r.Network || strings.HasPrefix(r.Error, "MCPError: ") {
		return ""
	}
	says := func(line string) bool {
		return unreachable().MatchString(line) && !strings.Contains(line, "MCPError: ")
	}
	missing := noClient().MatchString
	// What a host that is not reached leads to may be another error.
	failed := r.Failed && (missing(r.Error) || says(r.Error) || slices.ContainsFunc(r.Stderr, says))
	if failed || usesNetwork().MatchString(r.Code) && (r.printed(missing) || r.printed(says)) {
		return noNetwork
	}
	return ""
}

// printed reports whether a line of the run's output is such a one.
func (r Case) printed(such func(line string) bool) bool {
	return slices.ContainsFunc(r.Stdout, such) || slices.ContainsFunc(r.Stderr, such)
}

var (
	syntaxError = text.Pattern(`^SyntaxError: .*, line (\d{1,7})\)`)
	magic       = text.Pattern(`^\s*(!|%{1,2})`)
	adds        = text.Pattern(`\b(?:install|add)\b`)
	shellLine   = text.Pattern(`^\s*(?:python[0-9.]* -m )?` + installers + `(?: pip)? (?:install|add)\b`)
)

// ipythonLine is for lines that only IPython runs, or a shell.
func ipythonLine(r Case) string {
	at := syntaxError().FindStringSubmatch(r.Error)
	if at == nil {
		return ""
	}
	line := lineOf(r.Code, at[1])
	found := magic().FindStringSubmatch(line)
	switch {
	case shellLine().MatchString(line):
		return installing(r)
	case found == nil:
		return ""
	case usesInstaller().MatchString(line) && adds().MatchString(line):
		return installing(r)
	case found[1] == "!":
		return fmt.Sprintf("lines that begin with ! are for IPython; in Python: import subprocess; subprocess.run(%q, shell=True)",
			text.Bound(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "!")), 200))
	}
	if found[1] == "%%" {
		return "cells that begin with %% are for IPython; here all code is Python, and subprocess runs commands"
	}
	return "lines that begin with % are for IPython: leave them out"
}

func lineOf(code, number string) string {
	n, _ := strconv.Atoi(number) // seven digits
	lines := strings.SplitAfterN(code, "\n", n+1)
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}
