package bridge

import (
	"context"
	"strings"
	"testing"
)

func TestMissingModuleSaysWhatToDo(t *testing.T) {
	for failure, want := range map[string]string{
		"ModuleNotFoundError: No module named 'pandas'":                                                 "image python:3.14-slim does not have pandas, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'sklearn.linear_model'":                                   "image python:3.14-slim does not have sklearn, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ModuleNotFoundError: No module named 'some_package'":                                           "image python:3.14-slim does not have some_package, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'distutils'":                                              "distutils is not part of Python any more since 3.12",
		"ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.":   "image python:3.14-slim does not have openpyxl, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it, such as quay.io/jupyter/scipy-notebook",
		"ImportError: `Import xlsxwriter` failed.  Use pip or conda to install the xlsxwriter package.": "image python:3.14-slim does not have xlsxwriter, and nothing can be installed in a run: there is no network. The user can set MCP_BRIDGE_IMAGE to an image that has it",
		"ModuleNotFoundError: No module named 'jsno'. Did you mean: 'json'?":                            "",
		"ValueError: No module named 'pandas'":                                                          "",
		"ModuleNotFoundError: No module named 'a b; rm'":                                                "",
	} {
		if got := missingHint(failure, "python:3.14-slim"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", failure, got, want)
		}
	}
}

func TestMissingModuleHintIsInTheResult(t *testing.T) {
	s := newServer(t, nil, func(o *Options) {
		rootfs := o.Rootfs
		o.Rootfs = func(ctx context.Context, progress func(done, total int64, text string)) (Image, error) {
			image, err := rootfs(ctx, progress)
			image.Name = "host"
			return image, err
		}
	})
	r := runCode(t, s, "import no_such_package_at_all")
	if want := "hint: the host's Python does not have no_such_package_at_all"; !strings.Contains(r.Text(OutputCompact), want) {
		t.Errorf("got %s\nwant %s", r.Text(OutputCompact), want)
	}
}
