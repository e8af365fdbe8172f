package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// withHeader is a script that names packages.
func withHeader(code string, packages ...string) string {
	return "# /// script\n# dependencies = ['" + strings.Join(packages, "', '") + "']\n# ///\n" + code
}

// A fakeStore records what scripts need, and sandboxes what is mounted.
type fakeStore struct {
	mu     sync.Mutex
	needs  []Needs
	mounts []oci.Process
	err    error
}

func newServerWithPackages(t *testing.T, f *fakeStore, policyText string) *Runs {
	return newServer(t, nil, func(o *Options) {
		o.Packages = func(_ context.Context, _ Image, n Needs, progress func(done, total int64, text string)) (PackageSet, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.needs = append(f.needs, n)
			if progress != nil {
				progress(1, 2, "fetching")
			}
			return PackageSet{Dir: "/the/set"}, f.err
		}
		inner := o.Sandboxes
		o.Sandboxes = startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
			f.mu.Lock()
			f.mounts = append(f.mounts, p)
			f.mu.Unlock()
			return inner.Start(ctx, p)
		})
		o.Sessions, o.Preload = 2, []string{"of_the_image"}
		if policyText != "" {
			file := filepath.Join(t.TempDir(), "policy.toml")
			if err := os.WriteFile(file, []byte(policyText), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Policy = policy.Load(file, true, nil)
		}
	})
}

func (f *fakeStore) mounted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.mounts[len(f.mounts)-1]
	return slices.Contains(last.Binds, spec.Bind{Source: "/the/set", Target: PackagesDir})
}

func TestScriptGetsItsPackages(t *testing.T) {
	f := &fakeStore{}
	s := newServerWithPackages(t, f, "[packages]\npreload = ['six']")
	var said string
	r := s.Do(t.Context(), Request{Code: withHeader("print('ran')", "Six>=1"), File: "x.py", Timeout: time.Minute, Progress: func(_, _ int64, text string) { said = text }})
	if r.IsError() || !f.mounted() || said != "fetching" {
		t.Errorf("got %+v, mounted: %v, said %q", r, f.mounted(), said)
	}
	if n := f.needs[0]; n.File != "x.py" || n.requirements()[0] != "six>=1" || n.Grant.Index != policy.DefaultIndex {
		t.Errorf("needs: %+v", n)
	}
	if got := f.mounts[0].Python; !slices.Equal(got.Preload, []string{"six"}) || !got.Alone {
		t.Errorf("preload: %+v", got)
	}
	if r := runCode(t, s, "print(1)"); r.IsError() || f.mounted() || f.mounts[1].Python.Alone || !slices.Equal(f.mounts[1].Python.Preload, []string{"of_the_image"}) {
		t.Errorf("without a header: %+v, mounted: %v", r, f.mounted())
	}
}

func TestPackagesThatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		code, policy, status, want string
		err                        error
	}{
		"header":  {withHeader("", "x @ https://evil"), "", StatusValidation, "after @", nil},
		"policy":  {withHeader("", "six"), "[packages]\nallow = 'none'", StatusValidation, "add it to [packages] allow", nil},
		"request": {withHeader("", "six"), "", StatusValidation, "no such version", Invalid(errors.New("no such version"))},
		"network": {withHeader("", "six"), "", StatusSandbox, "cannot be reached", errors.New("the index cannot be reached")},
	} {
		f := &fakeStore{err: c.err}
		s := newServerWithPackages(t, f, c.policy)
		r := runCode(t, s, c.code)
		if r.Status != c.status || !strings.Contains(r.Error, c.want) || len(f.mounts) > 0 {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	s := newServer(t, nil, nil)
	if r := runCode(t, s, withHeader("", "six")); r.Status != StatusValidation {
		t.Errorf("without a store: %+v", r)
	}
}

func TestSessionKeepsThePackagesOfItsFirstRun(t *testing.T) {
	f := &fakeStore{}
	s := newServerWithPackages(t, f, "")
	in := func(session, code string) *Result {
		return s.Do(t.Context(), Request{Code: code, Session: session, Timeout: time.Minute})
	}
	if r := in("a", withHeader("x = 1", "six", "httpx")); r.IsError() {
		t.Fatalf("got %+v", r)
	}
	for _, code := range []string{"x += 1", withHeader("x += 1", "six"), withHeader("x += 1", "httpx", "six")} {
		if r := in("a", code); r.IsError() {
			t.Errorf("%q: %+v", code, r)
		}
	}
	r := in("a", withHeader("x += 1", "six", "numpy"))
	if r.Status != StatusValidation || !strings.Contains(r.Error, "here httpx, six, so numpy cannot be added") {
		t.Errorf("more packages: %+v", r)
	}
	if r := in("a", "print(x)"); r.Stdout[0] != "4" || len(f.needs) != 1 {
		t.Errorf("afterwards: %+v, asked %d times", r, len(f.needs))
	}
	if r := in("b", "1"); r.IsError() {
		t.Errorf("got %+v", r)
	}
	if r := in("b", withHeader("1", "six")); !strings.Contains(r.Error, "here none, so six cannot be added") {
		t.Errorf("after a first run without: %+v", r)
	}
}

// TestTimeForPackagesIsNotTheCodes has a run whose packages take longer than it may.
func TestTimeForPackagesIsNotTheCodes(t *testing.T) {
	s := newServer(t, nil, func(o *Options) {
		o.Packages = func(ctx context.Context, _ Image, _ Needs, _ func(done, total int64, text string)) (PackageSet, error) {
			if deadline, ok := ctx.Deadline(); ok {
				t.Errorf("they have until %s", deadline)
			}
			return PackageSet{}, nil
		}
	})
	if r := runCode(t, s, withHeader("print(1)", "six")); r.IsError() {
		t.Errorf("got %+v", r)
	}
}

func TestPackageIsNoProgram(t *testing.T) {
	f := &fakeStore{}
	s := newServerWithPackages(t, f, "")
	r := runCode(t, s, withHeader("import subprocess; subprocess.run(['pip-audit'])", "pip-audit"))
	if want := `run [sys.executable, "-m", "pip_audit"]`; !strings.Contains(r.Hint, want) {
		t.Errorf("got %+v, want the hint %s", r, want)
	}
	for code, files := range map[string]bool{"open('six')": true, "import subprocess; subprocess.run(['other'])": false} {
		r := runCode(t, s, withHeader(code, "pip-audit"))
		if (r.Hint != "") != files || strings.Contains(r.Hint, "packages") {
			t.Errorf("%s: %+v", code, r)
		}
	}
}

// TestPackagesAreAskedForAfterPrivateReads: the index learns their names, which code can
// make of what it has read.
func TestPackagesAreAskedForAfterPrivateReads(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	t.Parallel()
	const flow = "[servers.notes]\nprivate = true\n"
	for name, c := range map[string]struct {
		policy, code string
		here, asked  bool
	}{
		"a name":                      {flow, withHeader("1", "balance-a1-is-10"), false, true},
		"a version":                   {flow + "[packages]\nallow = ['six']", withHeader("1", "six==1.4.2"), false, true},
		"an extra":                    {flow + "[packages]\nallow = ['six']", withHeader("1", "six[secret]"), false, true},
		"a marker":                    {flow + "[packages]\nallow = ['six']", withHeader("1", `six; python_version > "3"`), false, true},
		"a time":                      {flow + "[packages]\nallow = ['six']", "# /// script\n# dependencies = ['six']\n# [tool.uv]\n# exclude-newer = '2024-01-01'\n# ///\n1", false, true},
		"one of several":              {flow + "[packages]\nallow = ['six']\nask = ['secret']", withHeader("1", "six", "secret"), false, true},
		"any":                         {flow + "[packages]\nallow = 'any'", withHeader("1", "six"), false, true},
		"the policy lists it":         {flow + "[packages]\nallow = ['six', 'idna>=3']", withHeader("1", "Six", "idna>=3"), false, false},
		"it is here":                  {flow, withHeader("1", "balance-a1-is-10"), true, false},
		"no packages":                 {flow, "# /// script\n# dependencies = []\n# ///\n1", false, false},
		"nothing private can be read": {"", withHeader("1", "balance-a1-is-10"), false, false},
	} {
		f := &fakeStore{}
		u := fakeUpstreams{"notes": {"read": func(context.Context, json.RawMessage) (string, error) { return "secret", nil }}}.Proxy(t, bridgetest.Options{})
		s := newServerWithPackages(t, f, c.policy)
		s.o.Upstreams = u
		s.o.PackagesHere = func(context.Context, Needs) bool { return c.here }
		client := newClient()
		do := func(code string) string {
			r := s.Begin(Request{Code: code, Servers: []string{"notes"}, Client: client})
			if q := r.await(t.Context()); q != nil {
				return strings.Join(q.Reasons, "; ")
			}
			return r.Result().Status
		}
		if got := do("await mcp_notes.read()"); got != StatusSuccess {
			t.Fatalf("%s: %s", name, got)
		}
		got := do(c.code)
		if asked := strings.Contains(got, "private data was read before, from notes.read; what packages are asked for gets to "+policy.DefaultIndex); asked != c.asked {
			t.Errorf("%s: got %s", name, got)
		}
		f.mu.Lock()
		if fetched := len(f.needs) > 0; fetched && c.asked {
			t.Errorf("%s: packages were got before the user was asked: %+v", name, f.needs)
		}
		f.mu.Unlock()
	}
}
