package project

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/oci/spec"
)

// tree makes a folder with these files; a name that ends with / is a folder, and one with ->
// a link.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	add(t, dir, names...)
	return dir
}

func add(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, to, link := strings.Cut(name, " -> ")
		full := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(to, full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte("secret"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// find returns what is hidden of a folder.
func find(t *testing.T, p *Projects, dir string) []string {
	t.Helper()
	found, err := p.Find(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if found.Source != dir {
		t.Fatalf("the source is %q, want %q", found.Source, dir)
	}
	return found.Hidden
}

func TestSecretsAreHiddenAtAnyDepth(t *testing.T) {
	dir := tree(t,
		".env", ".env.local", ".envrc", ".ENV.Prod", "a/.env.d/x", "a/b/c/.env", "env", "x.env", "a/environment.py",
		".git/config", ".git/HEAD", ".git/modules/m/config", ".git/worktrees/w/config.worktree", "sub/.git/config", "vendor/.git", "config", "a/config", ".github/config",
		"a/tls/server.pem", "a/tls/server.KEY", "a/tls/server.crt", "key", "pem", "keys/", "dir.key/inside.pem",
		".npmrc", "web/.npmrc", ".netrc", "a/.Netrc", ".npmrc.example",
		"bare.git/HEAD", "bare.git/objects/", "bare.git/refs/", "bare.git/config", "lib/HEAD", "lib/config",
		"linked/.git -> ../gitdir", "gitdir/config",
	)
	want := []string{
		".ENV.Prod", ".env", ".env.local", ".envrc", ".git/config", ".git/modules/m/config", ".git/worktrees/w/config.worktree", ".netrc", ".npmrc",
		"a/.Netrc", "a/.env.d", "a/b/c/.env", "a/tls/server.KEY", "a/tls/server.pem", "bare.git/config", "dir.key", "gitdir/config", "sub/.git/config", "web/.npmrc",
	}
	if got := find(t, New(Options{}), dir); !slices.Equal(got, want) {
		t.Errorf("hidden are\n%q, want\n%q", got, want)
	}
}

// TestWhatHiddenLinksLeadToIsHidden, as code follows them: the folder is at /project, and
// nothing of the host is beside it.
func TestWhatHiddenLinksLeadToIsHidden(t *testing.T) {
	dir := tree(t,
		"conf/prod.txt", "conf/dev.txt", "conf/abs.txt", "conf/chain.txt", "conf/out.txt", "conf/up.txt", "all/x", "seen.txt",
		".env -> conf/prod.txt", "a/b/.env -> ../../conf/dev.txt", ".env.abs -> /project/conf/abs.txt",
		"one -> conf", ".env.chain -> one/../hop", "hop -> conf/chain.txt", ".env.up -> ../../project/conf/up.txt",
		".env.folder -> all", ".env.self -> .", "a/.env.up -> ..", ".env.host -> /etc/passwd", ".env.out -> ../conf/out.txt",
		".env.none -> nowhere", ".env.loop -> .env.loop", "shown -> seen.txt", "x -> .env",
	)
	want := []string{"all", "conf/abs.txt", "conf/chain.txt", "conf/dev.txt", "conf/prod.txt", "conf/up.txt"}
	if got := find(t, New(Options{}), dir); !slices.Equal(got, want) {
		t.Errorf("hidden are\n%q, want\n%q", got, want)
	}
}

// TestSocketsAndPipesAreHidden: a read-only mount does not keep code from connecting to them.
func TestSocketsAndPipesAreHidden(t *testing.T) {
	dir := tree(t, "a/file")
	l, err := net.Listen("unix", filepath.Join(dir, "a/sock"))
	if err == nil {
		defer l.Close()
		err = unix.Mkfifo(filepath.Join(dir, "pipe"), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := find(t, New(Options{}), dir); !slices.Equal(got, []string{"a/sock", "pipe"}) {
		t.Errorf("hidden are %q", got)
	}
}

// TestChangesAreFound by the next look, also those that keep a folder's modification time.
func TestChangesAreFound(t *testing.T) {
	dir := tree(t, "a/b/file", ".env")
	p := New(Options{})
	old := time.Now().Add(-time.Hour)
	settle := func() {
		p.index.top.settle()
	}
	for n, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return nil }, []string{".env"}},
		{func() error { return os.WriteFile(filepath.Join(dir, "a/b/.env"), nil, 0o600) }, []string{".env", "a/b/.env"}},
		{func() error { return os.Remove(filepath.Join(dir, ".env")) }, []string{"a/b/.env"}},
		{func() error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")) }, []string{"c/b/.env"}},
		{func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "c/b/x.key"), nil, 0o600), os.Chtimes(filepath.Join(dir, "c/b"), old, old))
		}, []string{"c/b/.env", "c/b/x.key"}},
		{func() error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "c")), os.Symlink("/etc", filepath.Join(dir, "c")))
		}, nil},
		{func() error {
			return errors.Join(os.Remove(filepath.Join(dir, "c")), os.MkdirAll(filepath.Join(dir, "c/b/.env"), 0o755))
		}, []string{"c/b/.env"}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := find(t, p, dir); !slices.Equal(got, step.want) {
				t.Errorf("step %d: hidden are %q, want %q", n, got, step.want)
			}
			settle() // as if the last change were long ago
		}
	}
}

// settle has a look trust what was read.
func (f *folder) settle() {
	f.sure = true
	for _, in := range f.inside {
		in.settle()
	}
}

// TestFreshFoldersAreReadAgain: a second change may come at the same time of a coarse clock.
func TestFreshFoldersAreReadAgain(t *testing.T) {
	dir := tree(t, "a/file")
	p := New(Options{})
	find(t, p, dir)
	if p.index.top.sure || p.index.top.inside["a"].sure {
		t.Error("a folder that has just changed counts as read for good")
	}
}

func TestFoldersThatOthersMayNotEnterAreHidden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := tree(t, "a/closed/.env", "a/open/.env")
	if err := os.Chmod(filepath.Join(dir, "a/closed"), 0o750); err != nil {
		t.Fatal(err)
	}
	p := New(Options{})
	if got := find(t, p, dir); !slices.Equal(got, []string{"a/closed", "a/open/.env"}) {
		t.Errorf("hidden are %q", got)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Find(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "chmod o+rx "+dir) {
		t.Errorf("the folder itself: %v", err)
	}
}

func TestTooLargeFoldersAreRefused(t *testing.T) {
	dir := tree(t)
	var names []string
	for n := range maxHidden + 1 {
		names = append(names, fmt.Sprintf("%d/.env", n))
	}
	add(t, dir, names...)
	p := New(Options{})
	_, err := p.Find(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "more than 512 files") || !strings.Contains(err.Error(), "--mounts") {
		t.Errorf("one file too many: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "7/.env")); err != nil {
		t.Fatal(err)
	}
	if _, again := p.Find(t.Context(), dir); again == nil || again != err { //nolint:errorlint // it is the very same
		t.Errorf("at once: %v", again)
	}
	if got := find(t, p, tree(t, "x/.env")); !slices.Equal(got, []string{"x/.env"}) {
		t.Errorf("another folder: %q", got)
	}
	if got := find(t, p, dir); len(got) != maxHidden {
		t.Errorf("as many as may be: %d", len(got))
	}
	add(t, dir, "7/.env")
	_, _ = p.Find(t.Context(), dir)
	if err := os.Remove(filepath.Join(dir, "7/.env")); err != nil {
		t.Fatal(err)
	}
	p.until = time.Now()
	if got := find(t, p, dir); len(got) != maxHidden {
		t.Errorf("a minute later: %d", len(got))
	}
	x := newIndex(dir)
	x.until = time.Now().Add(-time.Second)
	if err := x.open(); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(x.fd)
	if err := x.visit(t.Context(), x.top, "."); err == nil || !strings.Contains(err.Error(), "takes longer than 10s") {
		t.Errorf("after its time: %v", err)
	}
	x.folders, x.until = maxFolders, time.Now().Add(time.Minute)
	if err := x.visit(t.Context(), x.top, "."); err == nil || !strings.Contains(err.Error(), "more than 50000 folders") {
		t.Errorf("one folder too many: %v", err)
	}
	x.folders, x.entries = 0, maxEntries
	if err := x.visit(t.Context(), &folder{}, "."); err == nil || !strings.Contains(err.Error(), "more than 1000000 files") {
		t.Errorf("one file too many: %v", err)
	}
	if err := x.visit(t.Context(), &folder{}, strings.Repeat("x/", maxPath)); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("too deep: %v", err)
	}
}

// TestNamesThatCannotBeHiddenAreRefused: libcontainer gets paths as JSON.
func TestNamesThatCannotBeHiddenAreRefused(t *testing.T) {
	p := New(Options{})
	if got := find(t, p, tree(t, "caf\xe9/menu.txt", "caf\xe9.txt")); len(got) > 0 {
		t.Errorf("without a secret: %q", got)
	}
	if _, err := p.Find(t.Context(), tree(t, "caf\xe9/.env")); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("with one: %v", err)
	}
	if got := find(t, p, tree(t, "a b\n\\/.env")); !slices.Equal(got, []string{"a b\n\\/.env"}) {
		t.Errorf("odd names: %q", got)
	}
}

func TestResolveRefusesWhatIsNoProject(t *testing.T) {
	dir := tree(t, "real/", "file", "link -> real", "gone -> nowhere")
	refused := errors.New("refused")
	p := New(Options{Dir: filepath.Join(dir, "link"), Check: func(d string) error {
		if d == dir {
			return refused
		}
		return nil
	}})
	for _, from := range []string{"", filepath.Join(dir, "real")} {
		if got, err := p.Resolve(from); err != nil || got != filepath.Join(dir, "real") {
			t.Errorf("%q: %q, %v", from, got, err)
		}
	}
	if _, err := p.Resolve(dir); !errors.Is(err, refused) {
		t.Errorf("a folder that is refused: %v", err)
	}
	if _, err := p.Resolve("."); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a folder without a path: %v", err)
	}
	for name, want := range map[string]string{"gone": "does not exist", "file": "not a folder"} {
		if _, err := p.Resolve(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "/project") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoteSaysWhyCodeCannotRead(t *testing.T) {
	shown := spec.Project{Source: "/src"}
	if got := New(Options{}).Note(shown); got != "" {
		t.Errorf("without Denied: %q", got)
	}
	p := New(Options{Denied: func(s spec.Project) (string, string) { return "no " + s.Source, "chmod" }})
	if got := p.Note(shown); got != "no /src; to fix it: chmod" {
		t.Errorf("note: %q", got)
	}
}

// BenchmarkUnchanged looks through 10,000 folders with 100,000 files that have not changed.
func BenchmarkUnchanged(b *testing.B) {
	dir := b.TempDir()
	for n := range 10_000 {
		at := filepath.Join(dir, fmt.Sprint(n/100), fmt.Sprint(n%100))
		if err := os.MkdirAll(at, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 10 {
			if err := os.WriteFile(filepath.Join(at, fmt.Sprint(f)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	x := newIndex(dir)
	begin := time.Now()
	if _, err := x.look(b.Context()); err != nil {
		b.Fatal(err)
	}
	first := time.Since(begin)
	x.top.settle()
	for b.Loop() {
		if _, err := x.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Milliseconds()), "ms-first")
}
