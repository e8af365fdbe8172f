package bridge

import (
	"strings"
	"testing"
)

func TestCompactText(t *testing.T) {
	for name, tt := range map[string]struct {
		r    Result
		want string
	}{
		"plain success": {Result{Status: StatusSuccess, ExitCode: new(0), Stdout: []string{"a", "", "b"}}, "a\n\nb"},
		"nothing said":  {Result{Status: StatusSuccess, ExitCode: new(0)}, "Success (no output)"},
		"a value":       {Result{Status: StatusSuccess, Stdout: []string{"a"}, Result: "42"}, "a\n42"},
		"success with a warning": {
			Result{Status: StatusSuccess, Stdout: []string{"a"}, Stderr: []string{"careful"}}, "a\nstderr:\ncareful",
		},
		"exception": {
			Result{Status: StatusError, ExitCode: new(1), Stderr: []string{"Traceback", "ValueError: x"}, Error: "ValueError: x"},
			"status: error\nexit: 1\nstderr:\nTraceback\nValueError: x",
		},
		"timeout": {
			Result{Status: StatusTimeout, Stdout: []string{"so far"}, Error: "too long"}, "status: timeout\nso far\nerror: too long",
		},
		"cure": {Result{Status: StatusSandbox, Error: "no", Hint: "type this"}, "status: sandbox_error\nerror: no\nhint: type this"},
		"note": {Result{Status: StatusSuccess, Stdout: []string{"a"}, Notes: []string{"n"}}, "a\nnote: n"},
	} {
		tt.r.summarize()
		if got := tt.r.Text(OutputCompact); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tt.want)
		}
	}
}

func TestFencedModes(t *testing.T) {
	r := Result{Status: StatusSuccess, ExitCode: new(0), Stdout: []string{"a", "```", "b,c"}}
	r.summarize()
	if got, want := r.Text(OutputTOON), "````toon\nstatus: success\nsummary: Success\nexitCode: 0\nstdout[3]: a,```,\"b,c\"\n````"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := r.Text(OutputJSON); !strings.HasPrefix(got, "````json\n{\n  \"status\": \"success\"") || !strings.HasSuffix(got, "\n}\n````") {
		t.Errorf("got %s", got)
	}
}
