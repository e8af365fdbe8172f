package bridge

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
)

func TestCompactText(t *testing.T) {
	for name, tt := range map[string]struct {
		r    run.Result
		want string
	}{
		"plain success": {run.Result{Status: run.StatusSuccess, ExitCode: new(0), Stdout: []string{"a", "", "b"}}, "a\n\nb"},
		"nothing said":  {run.Result{Status: run.StatusSuccess, ExitCode: new(0)}, "Success (no output)"},
		"a value":       {run.Result{Status: run.StatusSuccess, Stdout: []string{"a"}, Result: "42"}, "a\n42"},
		"success with a warning": {
			run.Result{Status: run.StatusSuccess, Stdout: []string{"a"}, Stderr: []string{"careful"}}, "a\nstderr:\ncareful",
		},
		"exception": {
			run.Result{Status: run.StatusError, ExitCode: new(1), Stderr: []string{"Traceback", "ValueError: x"}, Error: "ValueError: x"},
			"status: error\nexit: 1\nstderr:\nTraceback\nValueError: x",
		},
		"timeout": {
			run.Result{Status: run.StatusTimeout, Stdout: []string{"so far"}, Error: "too long"}, "status: timeout\nso far\nerror: too long",
		},
		"cure": {run.Result{Status: run.StatusSandbox, Error: "no", Hint: "type this"}, "status: sandbox_error\nerror: no\nhint: type this"},
		"note": {run.Result{Status: run.StatusSuccess, Stdout: []string{"a"}, Notes: []string{"n"}}, "a\nnote: n"},
	} {
		tt.r.Summarize()
		if got := Text(&tt.r, OutputCompact); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

func TestFencedModes(t *testing.T) {
	r := run.Result{Status: run.StatusSuccess, ExitCode: new(0), Stdout: []string{"a", "```", "b,c"}}
	r.Summarize()
	if got, want := Text(&r, OutputTOON), "````toon\nstatus: success\nsummary: Success\nexitCode: 0\nstdout[3]: a,```,\"b,c\"\n````"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := Text(&r, OutputJSON); !strings.HasPrefix(got, "````json\n{\n  \"status\": \"success\"") || !strings.HasSuffix(got, "\n}\n````") {
		t.Errorf("got %s", got)
	}
}
