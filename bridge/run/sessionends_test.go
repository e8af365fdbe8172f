package run

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func openEndings(dir string) *exitReasons {
	return &exitReasons{dir: dir, log: slog.New(slog.DiscardHandler)}
}

func TestNextServerKnowsWhatWentOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions [1]")
	s := openEndings(dir)
	s.keep("session", serverEnded)
	s.keep("run", "the run ended with it")
	s.add("over", "the code ended it")
	if s.why("session") != "" || s.why("run") != "" || s.why("over") != "the code ended it" {
		t.Errorf("it says %q, %q, %q", s.why("session"), s.why("run"), s.why("over"))
	}
	if why := openEndings(dir).why("over"); why != "" {
		t.Errorf("while the first server lives, another one says %q", why)
	}
	next := openEndings(dir)
	if why := next.why("session"); why != "" {
		t.Errorf("while the first server lives, another one says %q", why)
	}
	s.close()
	if next.why("session") != serverEnded || next.why("run") != "the run ended with it" || next.why("over") != "the code ended it" {
		t.Errorf("the next server says %q, %q, %q", next.why("session"), next.why("run"), next.why("over"))
	}
}

func TestBoundsOnWhatIsRemembered(t *testing.T) {
	s := openEndings("")
	s.keep("live", serverEnded)
	for i := range 2 * maxEnded {
		s.add(fmt.Sprint(i), "why")
	}
	if len(s.reasons) > maxEnded || !s.live["live"] || s.reasons["live"] == "" {
		t.Errorf("%d are remembered, the live one: %q", len(s.reasons), s.reasons["live"])
	}
}

func TestNamesInAForeignFileAreChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(`{"a\nb": "why", "c": "because"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := openEndings(dir); s.why("a\nb") != "" || s.why("c") != "because" {
		t.Errorf("it says %q and %q", s.why("a\nb"), s.why("c"))
	}
}
