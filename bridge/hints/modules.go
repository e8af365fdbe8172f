package hints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

var (
	// noModule finds the name in Python's or pandas' message about a missing module.
	noModule = text.Pattern(`^(?:ModuleNotFoundError: No module named '([A-Za-z0-9_.]{1,100})'|` +
		"ImportError: (?:Missing optional dependency '|`Import )([A-Za-z0-9_.]{1,100}))")
	noMember = text.Pattern(`^ImportError: cannot import name '(\w{1,100})' from '(mcp|mcp\.servers)'`)
)

// ModuleOf returns the name of the module that is missing, if that is the error.
func ModuleOf(failure string) string {
	found := noModule().FindStringSubmatch(failure)
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

// scientific is an image whose documentation (Jupyter Docker Stacks, Selecting
// an Image) lists these packages.
const scientific = "quay.io/jupyter/scipy-notebook"

var inScientific = map[string]bool{
	"numpy": true, "pandas": true, "matplotlib": true, "scipy": true, "sklearn": true, "skimage": true, "seaborn": true,
	"sympy": true, "statsmodels": true, "numba": true, "numexpr": true, "bokeh": true, "dask": true, "sqlalchemy": true,
	"h5py": true, "tables": true, "bs4": true, "openpyxl": true, "xlrd": true, "altair": true, "patsy": true,
	"cloudpickle": true, "dill": true, "bottleneck": true, "Cython": true,
}

// leftPython are modules that Python itself had until the version given here
// (PEP 594, and What's New in Python 3.12).
var leftPython = map[string]string{
	"asynchat": "3.12", "asyncore": "3.12", "distutils": "3.12", "imp": "3.12", "smtpd": "3.12",
	"aifc": "3.13", "audioop": "3.13", "cgi": "3.13", "cgitb": "3.13", "chunk": "3.13", "crypt": "3.13", "imghdr": "3.13",
	"mailcap": "3.13", "msilib": "3.13", "nis": "3.13", "nntplib": "3.13", "ossaudiodev": "3.13", "pipes": "3.13",
	"sndhdr": "3.13", "spwd": "3.13", "sunau": "3.13", "telnetlib": "3.13", "uu": "3.13", "xdrlib": "3.13", "lib2to3": "3.13",
}

// onWindows are modules that Python and pywin32 have there only.
var onWindows = map[string]bool{
	"_winapi": true, "msvcrt": true, "winreg": true, "winsound": true,
	"pythoncom": true, "pywintypes": true, "win32api": true, "win32com": true, "win32con": true, "win32gui": true, // of pywin32
}

// forNetwork are modules that are of no use without a network.
var forNetwork = map[string]bool{
	"aiohttp": true, "anthropic": true, "boto3": true, "botocore": true, "httplib2": true, "httpx": true, "openai": true, "paramiko": true,
	"playwright": true, "pycurl": true, "requests": true, "selenium": true, "urllib3": true, "websocket": true, "websockets": true, "yfinance": true,
}

// missingModule suggests what to do about a module that is not there.
func missingModule(r Case) string {
	module := ModuleOf(r.Error)
	top, rest, _ := strings.Cut(module, ".")
	switch {
	case module == "" || strings.Contains(r.Error, "Did you mean"):
		return ""
	case top == "runtime":
		return importRuntime
	case top == "mcp":
		return ownModule(r, rest)
	case slices.Contains([]string{"pip", "ensurepip", "micropip", "piplite"}, top):
		return installing(r)
	case top == "mcp_servers":
		return `mcp_servers needs no import: mcp_servers["name"] is a server`
	case strings.HasPrefix(top, "mcp_"):
		return proxyImport(r, top)
	case leftPython[top] != "":
		return fmt.Sprintf("%s is not part of Python any more since %s", top, leftPython[top])
	case onWindows[top]:
		return fmt.Sprintf("%s is only in Python for Windows, and this is Linux", top)
	}
	return notInImage(r, module)
}

// notInImage is for a module that another image may have.
func notInImage(r Case, module string) string {
	where := "image " + r.Image
	switch r.Image {
	case "":
		where = "this image"
	case "host":
		where = "the host's Python"
	}
	top, _, _ := strings.Cut(module, ".")
	what := top
	name := Distribution(dottedImport(r.Code, module))
	if name != top {
		what = fmt.Sprintf("%s (package %s)", top, name)
	}
	if forNetwork[top] && !r.Network {
		return fmt.Sprintf("%s does not have %s, and there is no network in the sandbox to use it with: call one of the user's MCP servers instead", where, what)
	}
	if r.Listed == nil || !r.Listed(name) {
		if module, pkg := moduleLike(top); module != "" {
			return fmt.Sprintf("%s does not have %s: did you mean %s?", where, top, describeModule(module, pkg))
		}
	}
	if r.Packages != nil && r.Packages(name) && !r.knows(name) {
		return fmt.Sprintf("%s does not have %s, and no well-known package is called so: check the name before you ask for it in a script header", where, what)
	}
	if r.Packages != nil && r.Packages(name) {
		return fmt.Sprintf("%s does not have %s: %s", where, what, withHeader(r, name))
	}
	hint := fmt.Sprintf("%s does not have %s, and nothing can be installed in a run: there is no network. "+
		"The user can set TOOLCELL_IMAGE to an image that has it", where, what)
	if inScientific[top] {
		hint += ", such as " + scientific
	}
	return hint
}

// knows reports whether a package is well known, or the user has named it.
func (r Case) knows(name string) bool { return IsWellKnown(name) || r.Listed != nil && r.Listed(name) }

func describeModule(module, pkg string) string {
	if plainName(module) == plainName(pkg) {
		return module
	}
	return fmt.Sprintf("%s (package %s)", module, pkg)
}

// dottedImport returns the name of a missing module as the code imports it: of
// google.cloud.storage, the error names google alone.
func dottedImport(code, module string) string {
	if strings.Contains(module, ".") {
		return module
	}
	for _, found := range importLine().FindAllStringSubmatch(code, -1) {
		if top, _, _ := strings.Cut(found[1], "."); top == module {
			return found[1]
		}
	}
	return module
}

var importLine = text.Pattern(`(?m)^[ \t]*(?:import|from)[ \t]+([\w.]{1,200})`)
