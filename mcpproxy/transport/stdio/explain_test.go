package stdio

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

// TestExplanationsAreCleanAndBounded, since names in them may be a server's.
func TestExplanationsAreCleanAndBounded(t *testing.T) {
	d := tailOf("")
	d.hidden = redact.New(config.Server{Env: map[string]string{"TOKEN": "a-secret-of-some-length"}})
	long := strings.Repeat("x", 1000)
	for given, want := range map[string]string{
		"":      "",
		"\n \n": "",
		"no host \x1b[31ma-secret-\x1b[0mof-some-length\r\x00": "no host [TOKEN]",
		strings.Repeat("line\n", 10):                           "line\nline\nline",
		long:                                                   long[:maxExplanationLine],
		strings.Repeat("\n", maxExplanation) + "more":          "",
	} {
		p := &Process{output: d, explain: func(time.Time) string { return given }}
		got := "its end"
		if want != "" {
			got += "\n" + want
		}
		if err := p.Explain(errors.New("its end"), time.Now()); !strings.HasPrefix(err.Error(), got) || len(err.Error()) > len(got)+len("…") {
			t.Errorf("%.50q gives %q, want %q", given, err, got)
		}
	}
}

// TestErrorsWithoutAnExplanationStayTheSame, also where the one who explains fails.
func TestErrorsWithoutAnExplanationStayTheSame(t *testing.T) {
	for name, explain := range map[string]func(time.Time) string{
		"nil": nil, "nothing": func(time.Time) string { return "" }, "a fault": func(time.Time) string { panic("a fault of the test") },
	} {
		p := &Process{output: tailOf(""), explain: explain}
		if err := p.Explain(io.EOF, time.Now()); err != io.EOF { //nolint:errorlint // the same
			t.Errorf("%s: %v", name, err)
		}
	}
	p := &Process{output: tailOf(""), explain: func(time.Time) string { return "why" }}
	if err := p.Explain(nil, time.Now()); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := p.Explain(contain.ErrInternal, time.Now()); !errors.Is(err, contain.ErrInternal) {
		t.Errorf("%v hides its cause", err)
	}
}

// TestExplanationsFollowWhatIsShownOfTheOutput, and go with it.
func TestExplanationsFollowWhatIsShownOfTheOutput(t *testing.T) {
	for _, tt := range []struct{ output, without, short, reason string }{
		{"", "asking: EOF", "asking: EOF\nwhy", "asking: EOF\nwhy"},
		{
			"Error: no key\nbye\n", "asking: EOF; its stderr is shown by: toolcell servers check s",
			"asking: EOF; its stderr ended: Error: no key (all of it is shown by: toolcell servers check s)\nwhy", "asking: EOF; its stderr says: Error: no key\nwhy",
		},
	} {
		p := &Process{output: tailOf(tt.output), explain: func(time.Time) string { return "why" }}
		err := fmt.Errorf("asking: %w", p.Explain(p.output.appendTo(io.EOF), time.Now()))
		_, reason := Reason(err)
		for _, text := range []struct {
			err  error
			want string
		}{{WithoutOutput(err), tt.without}, {ShortOutput(err), tt.short}, {reason, tt.reason}} {
			if text.err.Error() != text.want || !errors.Is(text.err, io.EOF) {
				t.Errorf("%q\nwant %q", text.err, text.want)
			}
		}
		if !HasOutput(err) {
			t.Error("it has nothing of the server")
		}
	}
}
