package packages

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestResolverErrorsAreASentence has what uv 0.13.9 wrote.
func TestResolverErrorsAreASentence(t *testing.T) {
	const noSolution = "error: No solution found when resolving dependencies\n  cause: "
	for _, c := range []struct {
		name, stderr, want string
		requirements       string
		refused            string
		network            bool // it is not the script's error
	}{
		{
			"unknown", noSolution + "Because thispackagedoesnotexist-xyz was not found in the package registry and you require thispackagedoesnotexist-xyz, we can conclude that your requirements are unsatisfiable.",
			`there is no package "thispackagedoesnotexist-xyz" in the index https://index.example/simple`, "", "", false,
		},
		{
			"version", noSolution + "Because there is no version of pandas==99 and you require pandas==99, we can conclude that your requirements are unsatisfiable.",
			"there is no version of pandas==99", "", "", false,
		},
		{
			"only", noSolution + "Because only six<=1.17.0 is available and you require six>=9999, we can conclude that your requirements are unsatisfiable.",
			"only six<=1.17.0 is available, and the script needs six>=9999", "", "", false,
		},
		{
			"source", noSolution + "Because all versions of docopt have no usable wheels and you require docopt, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for `docopt` because building from source is disabled for all packages (i.e., with `--no-build`)",
			"docopt has no wheel for the Python of this image, and nothing is built from source", "", "", false,
		},
		{
			"python", noSolution + "Because tensorflow==2.10.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require tensorflow==2.10.0, we can conclude that your requirements are unsatisfiable.\n\nhint: You require CPython 3.11",
			"tensorflow==2.10.0 has no wheel for the Python of this image, and nothing is built from source", "", "", false,
		},
		{
			"platform", noSolution + "Because pywin32<=302 has no wheels with a matching Python ABI tag (e.g., `cp311`) and only the following versions of pywin32 are available:\n             pywin32<=302\n             pywin32>=303\n         we can conclude that pywin32<303 cannot be used.\n         And because pywin32>=303 has no wheels with a matching platform tag (e.g., `manylinux_2_36_x86_64`) and you require pywin32, we can conclude that your requirements are unsatisfiable.",
			"pywin32 has no wheel for the Python of this image, and nothing is built from source", "", "", false,
		},
		{
			"age", noSolution + "Because there are no versions of httpx and you require httpx, we can conclude that your requirements are unsatisfiable.\n\nhint: `httpx` was filtered by `exclude-newer` to only include packages uploaded before 2010-01-01T00:00:00Z.",
			"the versions of httpx that would do were published within the last 3 days, and so do not count ([packages] excludeNewer)", "", "", false,
		},
		{
			"no upload times", "warning: `good-1.0-py3-none-any.whl` is missing an upload date, but user provided: 2026-11-20T00:00:00Z\n" + noSolution + "Because there are no versions of good and you require good, we can conclude that your requirements are unsatisfiable.\n\nhint: `good` was filtered by `exclude-newer` to only include packages uploaded before 2026-11-20T00:00:00Z. The latest version satisfying the requirement is v1.0.",
			"the index https://index.example/simple does not say when the files of good were uploaded, and so they do not count ([packages] excludeNewer)", "", "", false,
		},
		{
			"conflict", noSolution + "Because pandas>=3.1.1 depends on numpy{python_full_version < '3.14'}>=2.0.2 and you require pandas==3.1.1, we can conclude that you require numpy>=2.0.2.\n         And because you require numpy==1.26.4, we can conclude that your requirements are unsatisfiable.",
			"no versions go together for numpy==1.26.4, pandas==3.1.1: pandas>=3.1.1 needs numpy>=2.0.2, and the script needs numpy==1.26.4", "numpy==1.26.4 pandas==3.1.1 six", "", false,
		},
		{
			"conflict with an old version that has no wheels", noSolution + "Because all of:\n             numpy<=1.9.3\n             numpy>=1.10.4,<=1.19.5\n          have no usable wheels and only the following versions of numpy are available:\n             numpy<=1.9.3\n             numpy>=1.10.4\n         we can conclude that numpy>1.10.3,<=1.19.5 cannot be used.\n         And because only the following versions of numpy are available:\n             numpy<=1.19.5\n             numpy>=1.20\n         and you require numpy<1.20, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for `numpy`",
			"no versions go together for numpy<1.20, pandas>=2: numpy<1.20 has no wheel for the Python of this image, and nothing is built from source", "numpy<1.20 pandas>=2", "", false,
		},
		{
			"an old version that has no wheels", noSolution + "Because all of:\n             numpy<=1.9.3\n             numpy>=1.10.4,<=1.19.5\n          have no usable wheels and only the following versions of numpy are available:\n             numpy<=1.9.3\n             numpy>=1.10.4\n         we can conclude that numpy>1.10.3,<=1.19.5 cannot be used.\n         And because only the following versions of numpy are available:\n             numpy<=1.19.5\n             numpy>=1.20\n         and you require numpy<1.20, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for `numpy`",
			"numpy<1.20 has no wheel for the Python of this image, and nothing is built from source", "numpy<1.20", "", false,
		},
		{
			"conflict with a minor version", noSolution + "Because requests>=2.33.0 depends on urllib3>=1.26 and all of:\n             requests>=2.30.0,<=2.31.0\n             requests>=2.32.2,<=2.32.5\n         depend on urllib3>=1.21.1, we can conclude that requests>=2.30.0 depends on urllib3>=1.21.1.\n         And because you require urllib3<1.21 and requests>=2.30, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for `requests`",
			"no versions go together for urllib3<1.21, requests>=2.30: requests>=2.33.0 needs urllib3>=1.26, and the script needs urllib3<1.21", "urllib3<1.21 requests>=2.30 six", "", false,
		},
		{
			"conflict further down", noSolution + "Because flask>=3.0.0 depends on click>=8 and jinja2>=3.1.2 and you require flask>=3, we can conclude that you require jinja2>=3.1.2.\n         And because flask>=3.0.0 depends on jinja2>=3.1.2 and you require jinja2<3, we can conclude that your requirements are unsatisfiable.",
			"no versions go together for flask>=3, jinja2<3: flask>=3.0.0 needs jinja2>=3.1.2, and the script needs jinja2<3", "flask>=3 jinja2<3", "", false,
		},
		{
			"conflict of the script with itself", noSolution + "Because you require six<1 and six>2, we can conclude that your requirements are unsatisfiable.",
			"no versions go together for six<1, six>2", "six<1 six>2", "", false,
		},
		{
			"conflict of all", noSolution + "Because only good==1.0 is available and all versions of needy depend on good>=9, we can conclude that all versions of needy cannot be used.\n         And because you require needy, we can conclude that your requirements are unsatisfiable.",
			"no versions go together for needy: needy needs good>=9", "needy six", "", false,
		},
		{
			"another Python", noSolution + "Because reqpy==1.0 requires Python >=3.99 and only reqpy==1.0 is available, we can conclude that all versions of reqpy cannot be used.\n         And because you require reqpy, we can conclude that your requirements are unsatisfiable.",
			"reqpy==1.0 needs Python >=3.99, which the image does not have", "reqpy", "", false,
		},
		{
			"broken", noSolution + "Because badzip==1.0 has an invalid package format and only badzip==1.0 is available, we can conclude that all versions of badzip cannot be used.\n         And because you require badzip, we can conclude that your requirements are unsatisfiable.\n\nhint: The structure of `badzip` (v1.0) was invalid:\n  Failed to read from zip file",
			"the wheel of badzip==1.0 in the index is broken: it has an invalid package format", "badzip", "", true,
		},
		{
			"address", "warning: Requirements file `constraints.txt` does not contain any dependencies\nerror: Failed to resolve dependencies for package `needsurl==1.0`\n  cause: Package `good` was included as a URL dependency. URL dependencies must be expressed as direct requirements or constraints. Consider adding `good @ https://example.com/good-1.0-py3-none-any.whl` to your dependencies or constraints file.",
			"needsurl==1.0 needs good from an address, and packages come from the index alone", "needsurl", "", false,
		},
		{"warning", "warning: Requirements file `constraints.txt` does not contain any dependencies\nerror: something else", "the resolver failed: something else", "", "", true},
		{
			"marker", "error: Couldn't parse requirement in `requirements.txt` at position 0\n  cause: Expected a valid marker operator (such as `>=` or `not in`), found `===`\n         six ; sys_platform === \"x\"\n               ^^^",
			"a dependency of the script is not understood: Expected a valid marker operator (such as `>=` or `not in`), found `===`", "", "", false,
		},
		{
			"busy", "error: Request failed after 1 retry in 1.5s\n  cause: Failed to fetch: http://127.0.0.1/simple/six/\n  cause: HTTP status client error (429 Too Many Requests) for url (http://127.0.0.1/simple/six/)",
			"the package index https://index.example/simple cannot be reached: it answers 429 Too Many Requests", "", "", true,
		},
		{
			"login", noSolution + "Because six was not found in the package registry and you require six, we can conclude that your requirements are unsatisfiable.\n\nhint: An index (http://127.0.0.1:8898/simple) returned a 403 Forbidden error. Check that the index URL is correct and the credentials are valid.",
			"the package index https://index.example/simple cannot be reached: it answers 403 Forbidden", "", "", true,
		},
		{
			"no login", noSolution + "Because six was not found in the package registry and you require six, we can conclude that your requirements are unsatisfiable.\n\nhint: An index URL (http://127.0.0.1:8898/simple) could not be queried due to a lack of valid authentication credentials (401 Unauthorized)",
			"the package index https://index.example/simple cannot be reached: it answers 401 Unauthorized; a name and a password for it go into [packages] credential", "", "", true,
		},
		{
			"dns", "error: Request failed after 3 retries in 10.6s\n  cause: Failed to fetch: https://x/simple/pandas/\n  cause: tunnel error: unsuccessful",
			"the package index https://index.example/simple cannot be reached: looking up x: there is no such host", "", "looking up x: there is no such host", true,
		},
		{
			"another host", "error: Request failed after 3 retries in 10.6s\n  cause: Failed to fetch: https://files.example/x.whl\n  cause: tunnel error: unsuccessful",
			"the package index https://index.example/simple leads to another host: files.example:443 is not a host of the package index; to allow it, add it to [packages] files", "", "files.example:443 is not a host of the package index; to allow it, add it to [packages] files", true,
		},
		{
			"connection", "error: Request failed after 3 retries in 10.6s\n  cause: Failed to fetch: https://x/simple/pandas/\n  cause: tcp connect error\n  cause: Connection refused (os error 111)",
			"the package index https://index.example/simple cannot be reached: Connection refused (os error 111)", "", "", true,
		},
		{"other", "\x1b[31merror: something\x00 new\nhappened\xff", "the resolver failed: something new happened?", "", "", true},
	} {
		out := Output{Code: 1, Stderr: []byte(c.stderr)}
		if c.refused != "" {
			out.Refused = []string{c.refused}
		}
		err := explainResolver(out, Request{Index: "https://index.example/simple", Requirements: strings.Fields(c.requirements), ExcludeNewer: 72 * time.Hour})
		var wrong *RequestError
		if got := strings.Replace(err.Error(), "[31merror: ", "", 1); got != c.want || errors.As(err, &wrong) == c.network {
			t.Errorf("%s:\n got %q\nwant %q", c.name, err, c.want)
		}
	}
	bounded := Request{Requirements: []string{"vers>=2", "six"}, Constraints: []string{"vers<2", "idna<3"}}
	err := explainResolver(Output{Code: 1, Stderr: []byte(noSolution + "Because you require vers>=2 and vers<2, we can conclude that your requirements are unsatisfiable.")}, bounded)
	if want := "no versions go together for vers>=2; the policy allows vers<2"; err.Error() != want {
		t.Errorf("bounded by the policy:\n got %q\nwant %q", err, want)
	}
	// The names of packages are whole, and not those of the sentence.
	bounded.Requirements = []string{"require", "vers>=2", "vers-extra"}
	err = explainResolver(Output{Code: 1, Stderr: []byte(noSolution + "Because you require vers[all]>=2 and not vers-extras, we can conclude that your requirements are unsatisfiable.")}, bounded)
	if want := "no versions go together for vers>=2; the policy allows vers<2"; err.Error() != want {
		t.Errorf("of all that the script needs:\n got %q\nwant %q", err, want)
	}
	if err := explainResolver(Output{Stderr: []byte(strings.Repeat("x", 1<<20))}, Request{}); len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}
