package hints

import (
	"strings"
	"testing"
)

func TestMissingModuleSaysWhatToDo(t *testing.T) {
	for failure, want := range map[string]string{
		"ModuleNotFoundError: No module named 'pandas'":                                                 "image python:3.14-slim does not have pandas, and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'sklearn.linear_model'":                                   "image python:3.14-slim does not have sklearn (package scikit-learn), and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'some_package'":                                           "image python:3.14-slim does not have some_package, and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'win32com'":                                               "win32com is only in Python for Windows, and this is Linux",
		"ModuleNotFoundError: No module named 'distutils'":                                              "distutils is not part of Python any more since 3.12",
		"ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.":   "image python:3.14-slim does not have openpyxl, and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ImportError: `Import xlsxwriter` failed.  Use pip or conda to install the xlsxwriter package.": "image python:3.14-slim does not have xlsxwriter, and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'jsno'. Did you mean: 'json'?":                            "",
		"ValueError: No module named 'pandas'":                                                          "",
		"ModuleNotFoundError: No module named 'a b; rm'":                                                "",
	} {
		if got := For(Case{Failed: true, Error: failure, Image: "python:3.14-slim", Earlier: &Names{}}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", failure, got, want)
		}
	}
}

func TestDistributionsThatAreCalledOtherwise(t *testing.T) {
	for module, want := range map[string]string{
		"cv2": "opencv-python", "PIL": "pillow", "PIL.Image": "pillow", "yaml": "PyYAML", "sklearn.linear_model": "scikit-learn", "bs4": "beautifulsoup4",
		"google.cloud.storage": "google-cloud-storage", "google.cloud.storage.blob": "google-cloud-storage", "polars": "polars", "polars.io": "polars",
		"imblearn": "imbalanced-learn", "pdfminer.high_level": "pdfminer.six", "bson": "pymongo", "odf": "odfpy",
	} {
		if got := Distribution(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}

// TestPackageIsThatOfTheWholeImport: Python's message ends at the first part that is
// missing.
func TestPackageIsThatOfTheWholeImport(t *testing.T) {
	for code, want := range map[string]string{
		"import os\n    from google.cloud.storage import Client": "does not have google (package google-cloud-storage), and",
		"import google.protobuf.message as m":                    "does not have google (package protobuf), and",
		"__import__('google')":                                   "does not have google, and",
	} {
		if got := For(Case{Failed: true, Error: "ModuleNotFoundError: No module named 'google'", Code: code}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// TestPackagesAreNamedInAHeader where the policy lets the code do so.
func TestPackagesAreNamedInAHeader(t *testing.T) {
	any := func(string) bool { return true }
	const header = "# /// script\n# dependencies = ['six']\n# ///\n"
	for want, r := range map[string]Case{
		`this image does not have cv2 (package opencv-python): begin the code with three lines, # /// script, # dependencies = ["opencv-python"] and # ///`:        {Error: "ModuleNotFoundError: No module named 'cv2'", Packages: any},
		`this image does not have polars: add "polars" to the dependencies in the header of the code`:                                                              {Error: "ModuleNotFoundError: No module named 'polars'", Packages: any, Code: header},
		`this image does not have httpx: begin the code with three lines, # /// script, # dependencies = ["httpx"] and # ///`:                                      {Error: "ModuleNotFoundError: No module named 'httpx'", Packages: any, Network: true},
		"this image does not have httpx, and there is no network in the sandbox to use it with: call one of the user's MCP servers instead":                        {Error: "ModuleNotFoundError: No module named 'httpx'", Packages: any},
		"this image does not have polars, and nothing can be installed in a run: there is no network. The user can set TOOLCELL_IMAGE to an image that has it":     {Error: "ModuleNotFoundError: No module named 'polars'", Packages: func(string) bool { return false }},
		`packages come before the code runs, and not by an installer: begin the code with three lines, # /// script, # dependencies = ["polars"] and # ///`:        {Error: "ModuleNotFoundError: No module named 'pip'", Packages: any, Code: "run([exe, '-m', 'pip', 'install', '-q', '--no-cache-dir', 'polars>=1'])"},
		`packages come before the code runs, and not by an installer: begin the code with three lines, # /// script, # dependencies = ["opencv-python"] and # ///`: {Error: "ModuleNotFoundError: No module named 'pip'", Packages: any, Code: "run([exe, '-m', 'pip', 'install', 'cv2'])"},
		`packages come before the code runs, and not by an installer: begin the code with three lines, # /// script, # dependencies = ["NAME"] and # ///`:          {Error: "ModuleNotFoundError: No module named 'pip'", Packages: any, Code: "import pip"},
	} {
		r.Failed, r.Earlier = true, &Names{}
		if got := For(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestHostsPythonIsNoImage: toolcell exec --host runs code on it.
func TestHostsPythonIsNoImage(t *testing.T) {
	got := For(Case{Failed: true, Error: "ModuleNotFoundError: No module named 'polars'", Image: "host", Earlier: &Names{}})
	if !strings.HasPrefix(got, "the host's Python does not have polars, and nothing") {
		t.Error(got)
	}
}

// TestPackagesOfASessionGoIntoAnother since it keeps those of its first run.
func TestPackagesOfASessionGoIntoAnother(t *testing.T) {
	r := Case{
		Failed: true, Error: "ModuleNotFoundError: No module named 'polars'", Earlier: &Names{}, Packages: func(string) bool { return true },
		Session: "a", Live: func(name string) bool { return name == "a" },
	}
	const other = "this image does not have polars: this session keeps the packages of its first run; in another one, "
	for code, want := range map[string]string{
		"import polars": other + `begin the code with three lines, # /// script, # dependencies = ["polars"] and # ///`,
		"# /// script\n# dependencies = ['six']\n# ///\nimport polars": other + `add "polars" to the dependencies in the header of the code`,
	} {
		r.Code = code
		if got := For(r); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	r.Live = func(string) bool { return false } // the run has ended it
	if got := For(r); strings.Contains(got, "session") {
		t.Errorf("a session that has ended: %s", got)
	}
}

// TestInstallersNameTheirPackage if there is one that an index can have.
func TestInstallersNameTheirPackage(t *testing.T) {
	for code, want := range map[string]string{
		"!pip install git+https://example.org/x":      `["NAME"]`,
		"!pip install -r requirements.txt":            `["NAME"]`,
		"!pip install ./x-1.0-py3-none-any.whl":       `["NAME"]`,
		"!pip install -U 'polars[all]>=1' six":        `["polars"]`,
		"!pip install polars==1.0":                    `["polars"]`,
		"!uv add polars":                              `["polars"]`,
		"import micropip; micropip.install('polars')": `["polars"]`,
		"micropip.install(['polars', 'six'])":         `["polars"]`,
	} {
		r := Case{Code: code, Packages: func(string) bool { return true }}
		if got := installing(r); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
	for _, code := range []string{"!apt-get install -y ffmpeg", "subprocess.run(['apk', 'add', 'ffmpeg'])", "!npm install left-pad"} {
		if got := installing(Case{Code: code, Packages: func(string) bool { return true }}); got != cannotInstall {
			t.Errorf("%s: %s", code, got)
		}
	}
}
