package savedtools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSavedToolsAreListedShownRemovedAndExported(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "/srv/shop")
	for _, tool := range []Tool{
		{Name: "net", Signature: "(gross: float)\x1b[31m -> float", Doc: "Without\ttax.\x07", Imports: []string{"math"}, Source: "import math as math\ndef net(gross: float): return gross / 1.2\n"},
		{Name: "late", Source: "from __future__ import annotations\ndef late(x: Unknown): return x\n"},
	} {
		if err := s.Save(tool); err != nil {
			t.Fatal(err)
		}
	}
	tools, problems := s.List()
	if len(problems) > 0 || len(tools) != 2 || tools[0].Name != "late" || tools[1].Saved.IsZero() {
		t.Fatalf("%+v, %v", tools, problems)
	}
	net, err := s.Show("net")
	if err != nil || net.Signature != "(gross: float)[31m -> float" || net.Doc != "Without\ttax." || strings.Join(net.Imports, " ") != "math" || !strings.HasPrefix(net.Source, "import math") {
		t.Errorf("%+v, %v", net, err)
	}
	var module strings.Builder
	if err := s.Export(&module); err != nil || strings.Index(module.String(), "from __future__") > strings.Index(module.String(), "def late") || strings.Count(module.String(), "def ") != 2 {
		t.Errorf("%s, %v", module.String(), err)
	}
	if err := s.Export(&module, "nets"); !errors.Is(err, ErrNotExist) || !strings.Contains(err.Error(), "there are late, net") {
		t.Errorf("exporting what is not there: %v", err)
	}
	if err := errors.Join(s.Remove("net"), s.Remove("late")); err != nil {
		t.Error(err)
	}
	if err := s.Remove("net"); !errors.Is(err, ErrNotExist) || !strings.Contains(err.Error(), "none are saved") {
		t.Errorf("removing twice: %v", err)
	}
}

// TestSavedToolFilesMayBeAnything: the folder is the user's, who edits files
// and puts some there.
func TestSavedToolFilesMayBeAnything(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "")
	if err := s.Save(Tool{Name: "kept", Source: "def kept(): pass\n"}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "global")
	for name, body := range map[string]string{
		"plain.py": "def plain(): pass\n", "torn.py": mark + "{\"doc\": \ndef torn(): pass\n", "huge.py": strings.Repeat("#", 1<<20),
		"../outside.py": "", "not a name.py": "", "notes.txt": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link.py")); err != nil {
		t.Fatal(err)
	}
	tools, problems := s.List()
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name+": "+strings.TrimSpace(tool.Source))
	}
	if got := strings.Join(names, "; "); got != "kept: def kept(): pass; plain: def plain(): pass; torn: def torn(): pass" {
		t.Errorf("got %s", got)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "huge") {
		t.Errorf("problems: %v", problems)
	}
	for _, name := range []string{"link", "../outside", "not a name", ""} {
		if _, err := s.Show(name); !errors.Is(err, ErrNotExist) {
			t.Errorf("showing %q: %v", name, err)
		}
	}
}

func TestProjectsKeepTheirToolsApart(t *testing.T) {
	home := t.TempDir()
	repo, plain := filepath.Join(home, "work", "repo"), filepath.Join(home, "notes")
	for _, d := range []string{filepath.Join(repo, ".git"), filepath.Join(repo, "src", "deep"), plain} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		repo: repo, filepath.Join(repo, "src", "deep"): repo, plain: plain, filepath.Join(home, "work"): filepath.Join(home, "work"),
		home: "", filepath.Dir(home): "", "/": "", "": "", "/usr": "/usr",
	} {
		if got := ProjectOf(dir, home); got != want {
			t.Errorf("the project of %q is %q, want %q", dir, got, want)
		}
	}
	tools := t.TempDir()
	projects := []string{"", "/a/shop", "/b/shop", "/c/..odd name"}
	for _, project := range projects {
		if err := Open(tools, project).Save(Tool{Name: "f", Source: project}); err != nil {
			t.Fatal(err)
		}
	}
	for _, project := range projects {
		if f, err := Open(tools, project).Show("f"); err != nil || f.Source != project {
			t.Errorf("%q has the tool of %q (%v)", project, f.Source, err)
		}
	}
	if folders, err := os.ReadDir(tools); err != nil || len(folders) != len(projects) {
		t.Errorf("%v, %v", folders, err)
	}
}

func TestSavedToolNamesStayInTheirFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tools")
	st := Open(dir, "")
	for _, name := range []string{"", "../x", "a/b", "a.b", ".x", "a\x00b", strings.Repeat("a", 65), "é", "a b", "-x"} {
		if err := st.Save(Tool{Name: name, Source: "x"}); err == nil {
			t.Errorf("%q was taken for a name", name)
		}
	}
	if err := st.Save(Tool{Name: "big", Source: strings.Repeat("x", MaxSource+1)}); err == nil {
		t.Error("a source above the limit was kept")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSavedToolsAreBounded(t *testing.T) {
	s := Open(t.TempDir(), "")
	for i := range maxTools {
		if err := s.Save(Tool{Name: fmt.Sprint("f", i), Source: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Save(Tool{Name: "another", Source: "x"}); err == nil || !strings.Contains(err.Error(), "there are 200 saved tools already") {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.Show("another"); !errors.Is(err, ErrNotExist) || !strings.Contains(err.Error(), "there are f0, f1, f10, ") || !strings.HasSuffix(err.Error(), " and 180 more") {
		t.Errorf("showing one more: %v", err)
	}
	for size, kept := range map[int]bool{maxSchema: true, maxSchema + 1: false} { // one that is there may be replaced
		schema := `{"title":"` + strings.Repeat("x", size-12) + `"}`
		if err := s.Save(Tool{Name: "f1", Source: "x", Schema: json.RawMessage(schema)}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Show("f1"); err != nil || (len(got.Schema) > 0) != kept {
			t.Errorf("a schema of %d bytes has %d: %v", len(schema), len(got.Schema), err)
		}
	}
}

// TestNoToolHasANameThatCodeImports: neither a new one nor one that was saved when
// it could be. It can be shown and removed.
func TestNoToolHasANameThatCodeImports(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, "")
	if err := s.Save(Tool{Name: "kept", Source: "def kept(): pass\n"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pd", "np", "plt", "json", "requests", "Path", "runtime"} {
		const source = "def it(): pass\n"
		if err := s.Save(Tool{Name: name, Source: source}); !errors.Is(err, ErrReserved) || !strings.Contains(err.Error(), "another name") {
			t.Errorf("saving %s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "global", name+".py"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if tool, err := s.Load(name); !errors.Is(err, ErrReserved) || tool.Source != "" {
			t.Errorf("loading %s: %+v, %v", name, tool, err)
		}
		if tool, err := s.Show(name); err != nil || tool.Source != source {
			t.Errorf("showing %s: %+v, %v", name, tool, err)
		}
		if err := s.Remove(name); err != nil {
			t.Error(err)
		}
	}
	if tool, err := s.Load("kept"); err != nil || tool.Source != "def kept(): pass\n" {
		t.Errorf("%+v, %v", tool, err)
	}
}

// TestToolWhoseCommentIsDamagedCountsAsPrivate: the comment would say what was read before it
// was saved.
func TestToolWhoseCommentIsDamagedCountsAsPrivate(t *testing.T) {
	s := Open(t.TempDir(), "")
	if err := s.Save(Tool{Name: "balance", Source: "balance = 7\n", Private: []string{"bank.accounts"}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.file("balance"))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{strings.Replace(string(whole), "}\n", "\n", 1), mark + "\nx = 1\n", mark + `{"private":7}`, mark + "null\nx = 1\n"} {
		if err := os.WriteFile(s.file("balance"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if tool, err := s.Show("balance"); err != nil || len(tool.Private) == 0 {
			t.Errorf("%q: %+v, %v", damaged, tool, err)
		}
	}
}
