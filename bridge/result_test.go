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
		"a server that is not where it is by default": {
			run.Result{Status: run.StatusSuccess, Stdout: []string{"a"}, Where: map[string]string{"notes": "sandboxed", "db": "host"}},
			"a\nservers: db (host), notes (sandboxed)",
		},
		"note": {run.Result{Status: run.StatusSuccess, Stdout: []string{"a"}, Notes: []string{"n"}}, "a\nnote: n"},
	} {
		tt.r.Summarize()
		if got := Text(&tt.r, OutputCompact); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

// TestPlacesAreToldOnceAConnection, and where a run has failed: that may be why.
func TestPlacesAreToldOnceAConnection(t *testing.T) {
	seen := map[string]bool{}
	isNew := func(text string) bool {
		defer func() { seen[text] = true }()
		return !seen[text]
	}
	for _, tt := range []struct {
		status, notes string
		want          int
	}{{run.StatusSuccess, "sandboxed", 1}, {run.StatusSuccess, "sandboxed", 0}, {run.StatusError, "sandboxed", 1}, {run.StatusSuccess, "host", 1}} {
		r := &run.Result{Status: tt.status, Where: map[string]string{"notes": tt.notes}}
		if got := r.With(isNew); len(got.Where) != tt.want || len(r.Where) != 1 {
			t.Errorf("%+v: %v, and the result itself has %v", tt, got.Where, r.Where)
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
