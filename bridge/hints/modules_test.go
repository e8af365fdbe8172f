package hints

import (
	"strings"
	"testing"
)

func TestMissingModuleSaysWhatToDo(t *testing.T) {
	for failure, want := range map[string]string{
		"ModuleNotFoundError: No module named 'pandas'":                                                 "image python:3.14-slim does not have pandas, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'sklearn.linear_model'":                                   "image python:3.14-slim does not have sklearn (package scikit-learn), and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'some_package'":                                           "image python:3.14-slim does not have some_package, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'distutils'":                                              "distutils is not part of Python any more since 3.12",
		"ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.":   "image python:3.14-slim does not have openpyxl, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ImportError: `Import xlsxwriter` failed.  Use pip or conda to install the xlsxwriter package.": "image python:3.14-slim does not have xlsxwriter, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'jsno'. Did you mean: 'json'?":                            "",
		"ValueError: No module named 'pandas'":                                                          "",
		"ModuleNotFoundError: No module named 'a b; rm'":                                                "",
	} {
		if got := For(Run{Failed: true, Error: failure, Image: "python:3.14-slim", Earlier: &Names{}}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", failure, got, want)
		}
	}
}

func TestDistributionsThatAreCalledOtherwise(t *testing.T) {
	for module, want := range map[string]string{
		"cv2": "opencv-python", "PIL": "pillow", "PIL.Image": "pillow", "yaml": "PyYAML", "sklearn.linear_model": "scikit-learn", "bs4": "beautifulsoup4",
		"google.cloud.storage": "google-cloud-storage", "google.cloud.storage.blob": "google-cloud-storage", "polars": "polars", "polars.io": "polars",
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
		if got := For(Run{Failed: true, Error: "ModuleNotFoundError: No module named 'google'", Code: code}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}
