package run

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestStartFailureIsPlain: what pid 1 writes is not taken for all of the cause where
// the kernel's words alone would mislead.
func TestStartFailureIsPlain(t *testing.T) {
	for _, tt := range []struct {
		exit   int
		stderr []string
		want   string
	}{
		{126, []string{"toolcell: running /usr/bin/python3: Exec format error"}, "starting Python in the sandbox: running /usr/bin/python3: Exec format error (it is not for this processor)"},
		{127, []string{"toolcell: running /usr/bin/python3: No such file or directory"}, "starting Python in the sandbox: running /usr/bin/python3: No such file or directory " +
			"(the image lacks what it is started with: its loader, or the program in its first line)"},
		{1, []string{"SyntaxError: invalid syntax"}, "starting Python in the sandbox: SyntaxError: invalid syntax"},
		{3, nil, "starting Python in the sandbox: the process ended with exit code 3"},
		{137, nil, "starting Python in the sandbox: the process was ended by signal 9"},
	} {
		if got := startFailure(oci.Exit{Code: tt.exit}, tt.stderr).Error(); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}

// TestNothingIsSaidOfARunThatNeverBegan: there is no note on which Python it ran, and
// the words of libraries are in the log alone.
func TestNothingIsSaidOfARunThatNeverBegan(t *testing.T) {
	var log strings.Builder
	s := newServer(t, nil, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Missing = func(spec.Limits) []string { return []string{"this host lacks something"} }
		o.Rootfs = func(context.Context, func(int64, int64, string)) (Image, error) {
			return Image{Name: "host", Python: "/usr/bin/python3", Notes: []string{"this ran on the host's own Python"}}, nil
		}
		o.Sandboxes = startFunc(func(_ context.Context, p oci.Process) (Sandbox, error) {
			p.Stdout.Close()
			p.Stderr.Close()
			return nil, &doctor.HintError{Err: detailedError{}, Hint: "try this"}
		})
	})
	r := runCode(t, s, "1")
	if r.Status != StatusSandbox || r.Error != "it is forbidden" || r.Hint != "try this" || len(r.Notes) > 0 || len(r.HostNotes()) > 0 {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(log.String(), "nsexec: failed") {
		t.Errorf("the log has no details: %s", log.String())
	}
}

type detailedError struct{}

func (detailedError) Error() string  { return "it is forbidden" }
func (detailedError) Detail() string { return "it is forbidden: nsexec: failed" }
