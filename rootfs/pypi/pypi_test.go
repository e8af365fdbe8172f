package pypi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/packages/packagestest"
	"github.com/toolcell/toolcell/rootfs/pypi"
)

const entryPoints = "[gui_scripts]\nserver-gui = server:gui\n\n; a comment\n[console_scripts]\nserver-demo = server.cli:app.main [extra]\nother=server:other\nnot one = a:b\nbroken = a b\nno-function = server\n[mcp]\nserver-plugin = server:plugin\n"

// newIndex has the package server-demo 1.0 and what it needs.
func newIndex(t *testing.T) *packagestest.Index {
	x := packagestest.New(t)
	addServer(t, x, "1.0", entryPoints)
	x.Add(t, "needed", "2.0", map[string]string{
		"needed/__init__.py":                     "word = 'from needed'\n",
		"needed-2.0.dist-info/entry_points.txt":  "[console_scripts]\nneeded-tool = needed:main\nother = needed:other\n",
		"json.py":                                "raise ImportError('not the standard library')\n",
		"unrelated-1.dist-inf/entry_points.txt":  "[console_scripts]\nx = x:x\n",
		"needed/x.dist-info/entry_points.txt":    "[console_scripts]\nnested = x:x\n",
		"needed-2.0.dist-info/sub/entry_points.": "",
	})
	return x
}

func addServer(t *testing.T, x *packagestest.Index, version, entryPoints string) {
	files := map[string]string{
		"server/__init__.py": "",
		"server/cli.py":      cli,
	}
	if entryPoints != "" {
		files["server_demo-"+version+".dist-info/entry_points.txt"] = entryPoints
	}
	x.Add(t, "server-demo", version, files)
}

// cli prints what a program sees.
const cli = `import sys, json, subprocess, importlib.metadata
class app:
    def main():
        import needed
        child = subprocess.run([sys.executable, "-c", "import needed; print(needed.word)"], capture_output=True, text=True, cwd="/").stdout.strip()
        print(json.dumps([sys.argv, needed.word, child, importlib.metadata.version("server-demo")]))
        try:
            import shadow
        except ImportError:
            return 3
`

func server(t *testing.T, program string, requirements ...string) pypi.Server {
	t.Helper()
	s := pypi.Server{Name: "my server", Dir: filepath.Join(t.TempDir(), "my server"), Program: program}
	for _, line := range requirements {
		r, err := requirement.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		s.Requirements = append(s.Requirements, r)
	}
	return s
}

func wantError(t *testing.T, what string, err error, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
}

// TestProgramStartsAsIfInstalled: it finds its packages and no others, in any working directory.
func TestProgramStartsAsIfInstalled(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs a Python on this host")
	}
	x := newIndex(t)
	i, err := server(t, "server-demo", "server-demo").Ensure(t.Context(), packagestest.Store(t), x.Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if i.PythonPath() != "" {
		t.Errorf("PYTHONPATH %q would come before the standard library", i.PythonPath())
	}
	line := i.Command(python, []string{"--flag", "a b"})
	for n := range line { // on this host the packages are elsewhere
		line[n] = strings.ReplaceAll(line[n], packages.Target, i.Set.Dir)
	}
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Dir = t.TempDir()
	for _, name := range []string{"shadow.py", "needed.py", "server.py"} {
		if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte("raise SystemExit('the working directory')"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONSAFEPATH=", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.ExitCode() != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := strings.TrimSpace(string(out)), `[["server-demo", "--flag", "a b"], "from needed", "from needed", "1.0"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInterpreterHasThePackages(t *testing.T) {
	x := newIndex(t)
	i, err := server(t, pypi.Interpreter, "server-demo").Ensure(t.Context(), packagestest.Store(t), x.Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Command("/usr/bin/python3", []string{"-m", "server"}); !slices.Equal(got, []string{"/usr/bin/python3", "-m", "server"}) || i.PythonPath() != packages.Target {
		t.Errorf("got %q, PYTHONPATH %q", got, i.PythonPath())
	}
}

func TestProgramsOfPackages(t *testing.T) {
	x := newIndex(t)
	store := packagestest.Store(t)
	for _, c := range []struct{ program, requirements, want string }{
		{"server-demo", "server-demo", "server-demo server.cli app.main"},
		{"other", "server-demo", "other server other"},
		{"other", "needed", "other needed other"},
		{"other", "needed server-demo", "other needed other"},
		{"needed-tool", "server-demo", "needed-tool needed main"}, // of a package that it needs
	} {
		i, err := server(t, c.program, strings.Fields(c.requirements)...).Ensure(t.Context(), store, x.Request(), nil)
		if err != nil {
			t.Errorf("%s of %s: %v", c.program, c.requirements, err)
			continue
		}
		if got := strings.Join(i.Command("python", nil)[3:], " "); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.program, c.requirements, got, c.want)
		}
	}
	for program, want := range map[string]string{
		"server-demo2":  `looking for the program of the server "my server": there is no program "server-demo2": server-demo has "other", "server-demo"`,
		"server-gui":    "there is no program", // not of the console
		"server-plugin": "there is no program",
		"no-function":   "there is no program",
		"broken":        "there is no program",
		"not one":       "there is no program",
		"x":             "there is no program", // of a folder that is no .dist-info
		"nested":        "there is no program",
	} {
		_, err := server(t, program, "server-demo").Ensure(t.Context(), store, x.Request(), nil)
		wantError(t, program, err, want)
	}
	_, err := server(t, "p", "absent").Ensure(t.Context(), store, x.Request(), nil)
	wantError(t, "a package without programs", err, "absent has no programs")
}

func TestHostileEntryPoints(t *testing.T) {
	many := "[console_scripts]\n"
	for n := range 1001 {
		many += fmt.Sprintf("p%d = a:b\n", n)
	}
	some := "[console_scripts]\n"
	for n := range 100 {
		some += fmt.Sprintf("p%d = a:b\n", n)
	}
	for name, c := range map[string]struct{ file, want string }{
		"many programs":     {many, "more than 1000 programs"},
		"a long line":       {"[console_scripts]\np = a:" + strings.Repeat("b", 5000), "a line of more than 4096 bytes"},
		"a long file":       {strings.Repeat("# comment\n", 30_000), "more than 262144 bytes"},
		"code for a module": {"[console_scripts]\np = os;evil:b\n", `there is no program "p"`},
		"code for a name":   {"[console_scripts]\np = a:b(1)\n", `there is no program "p"`},
		"a list to show":    {strings.ReplaceAll(some, "p0 ", "p_"), "more"},
		"controls":          {"[console_scripts]\np\x1b[2J = a:b\n", "no programs"},
	} {
		x := packagestest.New(t)
		addServer(t, x, "1.0", c.file)
		_, err := server(t, "p", "server-demo").Ensure(t.Context(), packagestest.Store(t), x.Request(), nil)
		wantError(t, name, err, c.want)
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: %d bytes", name, len(err.Error()))
		}
	}
}

// TestVersionsStayUntilAnUpdateIsAccepted, whatever the index has.
func TestVersionsStayUntilAnUpdateIsAccepted(t *testing.T) {
	x, store := newIndex(t), packagestest.Store(t)
	s := server(t, "server-demo", "server-demo")
	versions := func() (all string) {
		t.Helper()
		i, err := s.Ensure(t.Context(), store, x.Request(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range i.Set.Packages {
			all += p.Name + " " + p.Version + ","
		}
		return all
	}
	const first = "needed 2.0,server-demo 1.0,"
	if got := versions(); got != first {
		t.Fatalf("first: %s", got)
	}
	addServer(t, x, "1.1", entryPoints)
	x.Remove("needed")
	x.Add(t, "new", "3", nil)
	if got := versions(); got != first {
		t.Errorf("the index has others: %s", got)
	}
	if resolved, _ := x.Count(); resolved != 1 {
		t.Errorf("versions were chosen %d times", resolved)
	}

	u, err := s.Update(t.Context(), store, x.Request())
	if err != nil {
		t.Fatal(err)
	}
	if want := []pypi.Change{{"needed", "2.0", ""}, {"new", "", "3"}, {"server-demo", "1.0", "1.1"}}; !slices.Equal(u.Changes, want) {
		t.Errorf("changes: %+v", u.Changes)
	}
	if got := versions(); got != first {
		t.Errorf("before it is accepted: %s", got)
	}
	if err := u.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := versions(); got != "new 3,server-demo 1.1," {
		t.Errorf("after it is accepted: %s", got)
	}
	wantError(t, "accepted again", u.Accept(t.Context()), "changed meanwhile")
	if u, err = s.Update(t.Context(), store, x.Request()); err != nil || len(u.Changes) > 0 {
		t.Errorf("nothing newer: %+v, %v", u, err)
	}
	addServer(t, x, "1.1", entryPoints+"\n") // another file of the same version
	if u, err = s.Update(t.Context(), store, x.Request()); err != nil || !slices.Equal(u.Changes, []pypi.Change{{"server-demo", "1.1", "1.1"}}) {
		t.Errorf("another file: %+v, %v", u, err)
	}

	x.Close() // no network
	offline := x.Request()
	offline.Offline = true
	if _, err := s.Ensure(t.Context(), store, offline, nil); err != nil {
		t.Errorf("offline: %v", err)
	}
	if _, err = s.Update(t.Context(), store, offline); !errors.Is(err, packages.ErrOffline) {
		t.Errorf("an update offline: %v", err)
	}
	_, err = server(t, "p", "other-server").Ensure(t.Context(), store, offline, nil)
	wantError(t, "another server offline", err, "nothing may be fetched", "toolcell servers check 'my server'")
}

// TestChangedEntryChoosesAnew, and one that is only written in another order does not.
func TestChangedEntryChoosesAnew(t *testing.T) {
	x, store := newIndex(t), packagestest.Store(t)
	s := server(t, "other", "server-demo", "needed")
	chosen := func(what string, requirements []requirement.Requirement, python string, want int) {
		t.Helper()
		s.Requirements, s.Python = requirements, must(requirement.ParseSpecifier(python))
		if _, err := s.Ensure(t.Context(), store, x.Request(), nil); err != nil {
			t.Fatal(err)
		}
		if resolved, _ := x.Count(); resolved != want {
			t.Errorf("%s: versions were chosen %d times, want %d", what, resolved, want)
		}
	}
	first := s.Requirements
	chosen("at first", first, "", 1)
	chosen("in another order", []requirement.Requirement{first[1], first[0]}, "", 1)
	chosen("one less", first[:1], "", 2)
	chosen("a version", []requirement.Requirement{must(requirement.Parse("server-demo>=1"))}, "", 3)
	chosen("a Python", s.Requirements, ">=3.11", 4)
	chosen("again", s.Requirements, ">=3.11", 4)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFirstStartsAtOnceShareALock(t *testing.T) {
	x, store := newIndex(t), packagestest.Store(t)
	s := server(t, "server-demo", "server-demo")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := s.Ensure(t.Context(), store, x.Request(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if resolved, fetched := x.Count(); resolved != 1 || fetched != 2 {
		t.Errorf("chosen %d times, %d wheels fetched", resolved, fetched)
	}
}

func TestWhatAServerMayNotHave(t *testing.T) {
	denied := errors.New("denied by the policy")
	for name, c := range map[string]struct {
		prepare func(s *pypi.Server, r *packages.Request)
		wants   []string
	}{
		"a package that the policy denies": {
			func(_ *pypi.Server, r *packages.Request) { r.Check = func(string, string) error { return denied } },
			[]string{`of the server "my server": denied by the policy`},
		},
		"packages that nothing checks": {func(_ *pypi.Server, r *packages.Request) { r.Check = nil }, []string{"nothing checks"}},
		"another Python": {
			func(s *pypi.Server, _ *packages.Request) { s.Python = must(requirement.ParseSpecifier("==3.12.*")) },
			[]string{`the server "my server" asks for Python ==3.12.*, and the image python:test has 3.13.1`},
		},
		"more than there may be": {func(_ *pypi.Server, r *packages.Request) { r.MaxCount = 1 }, []string{"the most is 1"}},
	} {
		x := newIndex(t)
		s, r := server(t, "server-demo", "server-demo"), x.Request()
		c.prepare(&s, &r)
		_, err := s.Ensure(t.Context(), packagestest.Store(t), r, nil)
		wantError(t, name, err, c.wants...)
		if _, err := os.Lstat(filepath.Join(s.Dir, "pylock.toml")); err == nil {
			t.Errorf("%s: it is locked", name)
		}
	}
}

// TestDeniedSinceItWasLocked: the policy counts at each start.
func TestDeniedSinceItWasLocked(t *testing.T) {
	x, store := newIndex(t), packagestest.Store(t)
	s, r := server(t, "server-demo", "server-demo"), x.Request()
	if _, err := s.Ensure(t.Context(), store, r, nil); err != nil {
		t.Fatal(err)
	}
	r.Check = func(name, _ string) error { return errors.New(name + " is denied now") }
	_, err := s.Ensure(t.Context(), store, r, nil)
	wantError(t, "denied since", err, "is denied now")
}

func TestChangedLocksAreNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(lock string) string
		wants  []string
	}{
		"no digest": {func(lock string) string { _, rest, _ := strings.Cut(lock, "\n"); return rest }, []string{"does not say what it was made for"}},
		"empty":     {func(string) string { return "" }, []string{"does not say what it was made for"}},
		"no TOML":   {func(lock string) string { return lock + "= x" }, []string{"the lock, line", "is locked to these versions in"}},
		"another hash": {func(lock string) string {
			at := strings.Index(lock, `sha256 = "`) + len(`sha256 = "`)
			return lock[:at] + strings.Repeat("0", 64) + lock[at+64:]
		}, []string{"with the wheel that this image needs", "is locked to these versions in"}},
		"large": {func(lock string) string { return lock + strings.Repeat("#", 6<<20) }, []string{"reading the lock"}},
	} {
		x, store := newIndex(t), packagestest.Store(t)
		s := server(t, "server-demo", "server-demo")
		if _, err := s.Ensure(t.Context(), store, x.Request(), nil); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(s.Dir, "pylock.toml")
		content := must(os.ReadFile(file))
		if err := os.WriteFile(file, []byte(c.change(string(content))), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Ensure(t.Context(), store, x.Request(), nil)
		wantError(t, name, err, c.wants...)
	}
}

// TestCancelledFirstStartLeavesNoLock, and the next one makes it.
func TestCancelledFirstStartLeavesNoLock(t *testing.T) {
	x, store := newIndex(t), packagestest.Store(t)
	s, r := server(t, "server-demo", "server-demo"), x.Request()
	ctx, cancel := context.WithCancel(t.Context())
	inSandbox := r.Run
	r.Run = func(ctx context.Context, c packages.Command) (packages.Output, error) {
		cancel()
		return packages.Output{}, context.Cause(ctx)
	}
	if _, err := s.Ensure(ctx, store, r, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	r.Run = inSandbox
	if _, err := s.Ensure(t.Context(), store, r, nil); err != nil {
		t.Error(err)
	}
}
