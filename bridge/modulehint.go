package bridge

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// missingModule finds the name in Python's or pandas' message about a missing
// module.
var missingModule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:ModuleNotFoundError: No module named '([A-Za-z0-9_.]{1,100})'|` +
		"ImportError: (?:Missing optional dependency '|`Import )([A-Za-z0-9_.]{1,100}))")
})

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

// missingHint suggests what to do about a missing module; it is empty for other
// errors.
func missingHint(failure, image string) string {
	found := missingModule().FindStringSubmatch(failure)
	if found == nil || strings.Contains(failure, "Did you mean") {
		return ""
	}
	module, _, _ := strings.Cut(found[1]+found[2], ".")
	if since := leftPython[module]; since != "" {
		return fmt.Sprintf("%s is not part of Python any more since %s", module, since)
	}
	where := "image " + image
	switch image {
	case "":
		where = "this image"
	case "host":
		where = "the host's Python"
	}
	hint := fmt.Sprintf("%s does not have %s, and nothing can be installed in a run: there is no network. "+
		"The user can set MCP_BRIDGE_IMAGE to an image that has it", where, module)
	if inScientific[module] {
		hint += ", such as " + scientific
	}
	return hint
}
