package savedtools

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
)

// TestProjectIsFoundBehindLinks: the shell's directory and HOME may be links, to one another too.
func TestProjectIsFoundBehindLinks(t *testing.T) {
	top := t.TempDir()
	home, link, short := filepath.Join(top, "disk2", "me"), filepath.Join(top, "me"), filepath.Join(top, "short")
	repo := filepath.Join(home, "repo")
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(repo, "src")
	if err := errors.Join(os.Mkdir(src, 0o755), os.Symlink(home, link), os.Symlink(src, short)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, home, want string }{
		{link, home, ""},
		{home, link, ""},
		{link, link, ""},
		{filepath.Dir(home), link, ""},
		{short, home, repo},
		{filepath.Join(link, "repo"), link, repo},
		{filepath.Join(link, "repo"), "", repo},
	} {
		if got := ProjectOf(c.dir, c.home); got != c.want {
			t.Errorf("the project of %s at home in %q is %q, want %q", c.dir, c.home, got, c.want)
		}
	}
}

// TestFolderSaysWhichProjectItIsOf: as its reader left it. The folder of none says nothing.
func TestFolderSaysWhichProjectItIsOf(t *testing.T) {
	dir := t.TempDir()
	save := func(project string) Store {
		s := Open(dir, project)
		if err := s.Save(Tool{Name: "f", Source: "x\n"}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	note := filepath.Join(save("/srv/shop").folder(), projectFile)
	if text, err := os.ReadFile(note); err != nil || string(text) != "/srv/shop\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.WriteFile(note, []byte("/srv/shop, moved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	save("/srv/shop")
	if text, err := os.ReadFile(note); err != nil || string(text) != "/srv/shop, moved\n" {
		t.Errorf("after another was saved: %q, %v", text, err)
	}
	if entries, err := os.ReadDir(save("").folder()); err != nil || len(entries) != 1 || entries[0].Name() != "f.py" {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestWithoutAFolderNothingIsKept: nor is a folder below the working directory taken for it.
func TestWithoutAFolderNothingIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	s := Open("", "")
	if err := s.Save(Tool{Name: "f", Source: "x\n"}); err == nil || !strings.Contains(err.Error(), "no folder for saved tools") {
		t.Errorf("saving: %v", err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Open(".", "").Save(Tool{Name: "f", Source: "x\n"}); err != nil {
		t.Fatal(err)
	}
	if tools, problems := s.List(); len(tools) > 0 || len(problems) > 0 {
		t.Errorf("%+v, %v", tools, problems)
	}
	if err := s.Remove("f"); !errors.Is(err, ErrNotExist) {
		t.Errorf("removing: %v", err)
	}
}

// TestFolderThatCannotBeReadIsNotEmpty: what is in it may come back.
func TestFolderThatCannotBeReadIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, globalFolder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(dir, "")
	_, problems := s.List()
	_, shown := s.Show("f")
	for what, err := range map[string]error{
		"listing": errors.Join(problems...), "showing": shown, "removing": s.Remove("f"), "exporting": s.Export(io.Discard),
	} {
		if err == nil || errors.Is(err, ErrNotExist) || !strings.Contains(err.Error(), "reading the saved tools: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestToolThatCannotBeWrittenIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	gone, taken := filepath.Join(dir, "gone"), filepath.Join(dir, "taken")
	file := filepath.Join(taken, globalFolder, "f.py")
	if err := errors.Join(os.Symlink(filepath.Join(dir, "disk2"), gone), os.MkdirAll(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, project, want string }{
		{gone, "", "mkdir " + gone}, {gone, "/srv/shop", "mkdir " + gone}, {taken, "", file},
	} {
		err := Open(c.dir, c.project).Save(Tool{Name: "f", Source: "x\n"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("saved in %s of %q: %v, want an error with %q", c.dir, c.project, err, c.want)
		}
	}
}

func TestToolThatCannotBeRemovedIsThere(t *testing.T) {
	t.Chdir(t.TempDir()) // another user cannot enter what is above it
	s := Open(".", "")
	if err := s.Save(Tool{Name: "f", Source: "x\n"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(".", 0o755), os.Chmod(globalFolder, 0o555)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Chmod(globalFolder, 0o700); err != nil {
			t.Error(err)
		}
	}()
	ostest.Ordinary(t, func() {
		if err := s.Remove("f"); err == nil || !strings.Contains(err.Error(), `removing saved tool "f"`) {
			t.Errorf("removing: %v", err)
		}
		if names, err := s.Names(); err != nil || strings.Join(names, " ") != "f" {
			t.Errorf("%v, %v", names, err)
		}
	})
}
