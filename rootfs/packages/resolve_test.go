package packages

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// TestEarlierCutoffCounts of the policy's and the script's.
func TestEarlierCutoffCounts(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	days := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	for name, c := range map[string]struct {
		policy       int
		script, want time.Time
	}{
		"none":                          {0, time.Time{}, time.Time{}},
		"of the policy":                 {3, time.Time{}, days(3)},
		"of the script":                 {0, days(1), days(1)},
		"of the script, and it matters": {3, days(10), days(10)},
		"of the script, in vain":        {3, days(1), days(3)},
	} {
		r := Request{ExcludeNewer: time.Duration(c.policy) * 24 * time.Hour, Before: c.script}
		if got := r.cutoff(now); !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestResolverIsToldTheScriptsCutoff(t *testing.T) {
	for name, c := range map[string]struct {
		policy time.Duration
		before time.Time
		want   string
	}{
		"none":          {0, time.Time{}, ""},
		"alone":         {0, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), "--exclude-newer 2020-01-02T03:04:05Z"},
		"the earlier":   {time.Hour, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), "--exclude-newer 2020-01-02T03:04:05Z"},
		"in the future": {0, time.Date(2999, 1, 2, 3, 4, 5, 0, time.UTC), "--exclude-newer 2999-01-02T03:04:05Z"},
	} {
		x, s := newIndex(t, twoWheels(t)), newStore(t)
		r := x.request("a")
		r.ExcludeNewer, r.Before = c.policy, c.before
		if _, err := s.Resolve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		args := strings.Join(toStrings(x.task["args"]), " ")
		if !strings.Contains(args, c.want) || c.want == "" && strings.Contains(args, "--exclude-newer") {
			t.Errorf("%s: got %s, want %q", name, args, c.want)
		}
	}
}

// TestResolverErrorsNameTheScriptsCutoff, so that nobody looks for it in the policy.
func TestResolverErrorsNameTheScriptsCutoff(t *testing.T) {
	const (
		newer = "error: No solution found when resolving dependencies\n  cause: " +
			"Because there are no versions of httpx and you require httpx, we can conclude that your requirements are unsatisfiable.\n\n" +
			"hint: `httpx` was filtered by `exclude-newer` to only include packages uploaded before 2010-01-01T00:00:00Z."
		undated  = "warning: `httpx-1.0-py3-none-any.whl` is missing an upload date, but user provided: 2010-01-01T00:00:00Z\n" + newer
		byScript = "the versions of httpx that would do were published after 2010-01-01 00:00 UTC, and so do not count ([tool.uv] exclude-newer in the script)"
		byPolicy = "the versions of httpx that would do were published within the last 3 days, and so do not count ([packages] excludeNewer)"
		noDates  = "the index https://index.example/simple does not say when the files of httpx were uploaded, and so they do not count ([tool.uv] exclude-newer in the script)"
	)
	early, late := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		stderr string
		policy time.Duration
		before time.Time
		want   string
	}{
		{newer, 72 * time.Hour, early, byScript},
		{newer, 0, early, byScript},
		{newer, 72 * time.Hour, late, byPolicy},
		{newer, 72 * time.Hour, time.Time{}, byPolicy},
		{undated, 0, early, noDates},
	} {
		r := Request{Index: "https://index.example/simple", Requirements: []string{"httpx"}, ExcludeNewer: c.policy, Before: c.before}
		if err := explainResolver(Output{Code: 1, Stderr: []byte(c.stderr)}, r); err.Error() != c.want {
			t.Errorf("%s, %s:\n got %q\nwant %q", c.policy, c.before, err, c.want)
		}
	}
}

// TestResolverErrorsWithoutAReasonNameAllRequirements, but not more than a few.
func TestResolverErrorsWithoutAReasonNameAllRequirements(t *testing.T) {
	for requirements, want := range map[string]string{
		"a":         "no versions go together for a",
		"a b c":     "no versions go together for a, b, c",
		"a b c d":   "no versions go together for a, b, c and 1 more",
		"a b c d e": "no versions go together for a, b, c and 2 more",
	} {
		out := Output{Code: 1, Stderr: []byte("error: No solution found when resolving dependencies")}
		if err := explainResolver(out, Request{Requirements: strings.Fields(requirements)}); err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestResolverThatCannotBeStartedIsSaidToBe(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	broken := errors.New("broken")
	r := x.request("a")
	r.Run = func(context.Context, Command) (Output, error) { return Output{Stdout: x.lock()}, broken }
	if set, err := s.Ensure(t.Context(), r, nil); !errors.Is(err, broken) || err.Error() != "starting the resolver: broken" {
		t.Errorf("got %+v, %v", set, err)
	}
}

// TestVersionThatPythonDoesNotSayIsNotUsed, and it is asked again the next time.
func TestVersionThatPythonDoesNotSayIsNotUsed(t *testing.T) {
	s, image := newStore(t), Image{ID: "sha256-0123", Python: "/usr/bin/python3"}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		out  Output
		err  error
		want string
	}{
		"the sandbox fails": {Output{Stdout: []byte("3.13.1\n")}, broken, "asking the image's Python for its version: broken"},
		"Python fails":      {Output{Code: 1, Stdout: []byte("3.13.1\n")}, nil, `the image's Python does not say its version: it says "3.13.1"`},
		"no version":        {Output{Stdout: []byte("3.13\n")}, nil, `the image's Python does not say its version: it says "3.13"`},
	} {
		run := func(context.Context, Command) (Output, error) { return c.out, c.err }
		if v, err := s.PythonVersion(t.Context(), image, run); v != "" || err == nil || err.Error() != c.want {
			t.Errorf("%s: got %q, %v; want %s", name, v, err, c.want)
		}
	}
	says := func(context.Context, Command) (Output, error) { return Output{Stdout: []byte("3.14.0rc1\n")}, nil }
	lock := filepath.Join(s.dir, "locks", "pythons")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	if v, err := s.PythonVersion(t.Context(), image, says); err == nil {
		t.Errorf("it cannot be recorded: %q", v)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if v, err := s.PythonVersion(t.Context(), image, says); v != "3.14.0rc1" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	unlock, err := openStore(t, s.dir).cache.Try("pythons", state.Exclusive)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	unlock()
}

// TestImagesWhoseIDIsAPathAreNotLookedUp: it becomes the name of a file.
func TestImagesWhoseIDIsAPathAreNotLookedUp(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"", "../sha256-0123", "a/b", ".hidden"} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "an image has the ID") {
					t.Errorf("%q: got %v", id, err)
				}
			}()
			v, err := s.PythonVersion(t.Context(), Image{ID: id}, func(context.Context, Command) (Output, error) { return Output{}, fs.ErrInvalid })
			t.Errorf("%q: got %q, %v", id, v, err)
		}()
	}
}
